// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/executor.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/task/round_trip.hpp>
#include <plumb/task/task.hpp>

#include <coroutine>
#include <utility>

namespace plumb {

/// The other side of a `run_on`: its executor and a stop source of its own there, because callbacks run only on the
/// executor of their source. It ends only after the last request that was posted to it has run.
///
/// Order of events: start is posted there -> the task runs there -> its end goes home -> the outer request is no
/// longer watched -> if a request was posted there meanwhile, one trip there and back follows it.
template <executor E>
class elsewhere {
public:
    elsewhere(E where, io_env const& home) noexcept
        : where_(std::move(where)),
          trip_(home.executor),
          stop_(where_),
          env_{where_, stop_.token()},
          forward_(home.stop, request_stop{&stop_}) {}

    /// Awaits the end of `t`, which runs there; its result stays in it.
    template <class T>
    auto run(task<T>& t) noexcept {
        struct awaitable {
            elsewhere& there;
            std::coroutine_handle<typename task<T>::promise_type> started;

            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(awaiting h, io_env const&) noexcept {
                require(started && !started.promise().launched(),
                        "run_on was given a task that was awaited before, or moved from");
                started.promise().launch(h, there.env_, &there.trip_);
                there.trip_.depart(there.where_, started);
            }
            void await_resume() const noexcept {}
        };
        return awaitable{*this, t.coroutine()};
    }

    /// Goes on here, behind everything that was posted there.
    auto visit() noexcept {
        struct awaitable {
            elsewhere& there;

            [[nodiscard]] bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h, io_env const&) noexcept {
                there.trip_.visit(there.where_, h);
            }
            void await_resume() const noexcept {}
        };
        return awaitable{*this};
    }

    /// Whether a stop request waits there.
    [[nodiscard]] bool busy() noexcept {
        forward_.unregister();
        return stop_.busy();
    }

private:
    struct request_stop {
        stop_source* source;
        void operator()() const noexcept { source->request_stop(); }
    };

    E where_;
    round_trip trip_;
    stop_source stop_;
    io_env env_;
    stop_callback<request_stop> forward_;
};

/// Runs a task on another executor and gives its result on the caller's. A stop request of the caller reaches it.
/// The other executor runs until the caller has gone on, and the caller is not destroyed before.
/// Threads: the executors'. Allocates: its frame, from the pool. Source: coroutine-first i/o 6.1.
template <executor E, class T>
task<T> run_on(E where, task<T> what) {
    elsewhere<E> there(std::move(where), co_await this_env());
    co_await there.run(what);
    while (there.busy()) {
        co_await there.visit();
    }
    co_return what.take();
}

}  // namespace plumb
