// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/nested_stop_source.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/task.hpp>
#include <plumb/task/with_stop.hpp>

#include <concepts>
#include <coroutine>
#include <stop_token>
#include <utility>

namespace plumb {

/// `co_await next_turn()`: goes on behind everything that is queued on the coroutine's executor. No stop request ends it.
/// Threads: the executor's. Allocates: never.
class [[nodiscard]] next_turn : private work {
public:
    next_turn() noexcept : work(&next_turn::come) {}
    next_turn(next_turn const&) = delete;
    next_turn& operator=(next_turn const&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h, io_env const& env) noexcept {
        waiting_ = h;
        env.executor.post(this);  // the last touch
    }
    void await_resume() const noexcept {}

private:
    static void come(work& w) noexcept { static_cast<next_turn&>(w).waiting_.resume(); }

    std::coroutine_handle<> waiting_;
};

/// Awaits a task that a `std::stop_token` stops too: `scope.spawn(stopped_by(thread.get_stop_token(), f()))`. Gives what
/// the task gives. The request may be made on any thread.
/// Threads: the executor's. Allocates: its frame, from the pool, and what std::stop_callback does.
template <class T>
task<T> stopped_by(std::stop_token token, task<T> given) {
    io_env const& env = co_await this_env();
    stop_source own(env.executor);
    auto const request = [&own] { own.request_stop(); };
    task<T> t = std::move(given);  // it ends before the source
    {
        stop_callback const inner(env.stop, request);
        std::stop_callback const outer(std::move(token), request);
        co_await with_stop(own.token(), t.finished());
    }
    while (own.busy()) {
        co_await next_turn();
    }
    co_return t.take();
}

/// `async_run` with the stop of the standard library; its source need not outlive the task.
template <executor E, class T, std::same_as<std::stop_token> Stop>
void async_run(E where, task<T> what, Stop stop) {
    async_run(std::move(where), stopped_by(std::move(stop), std::move(what)));
}
template <executor E, class T, std::same_as<std::stop_token> Stop,
          std::invocable<task_result<T>&> Completed>
void async_run(E where, task<T> what, Stop stop, Completed completed) {
    async_run(std::move(where), stopped_by(std::move(stop), std::move(what)), plumb::stop_token(),
              std::move(completed));
}

}  // namespace plumb
