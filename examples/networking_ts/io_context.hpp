// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/handler_work.hpp"

#include <plumb/io/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

namespace networking_ts {

/// Where handlers are called and i/o is done: a context of plumb, whose loop is run one item at a time, so that a
/// `stop` and what a handler throws end `run` before the next handler. The items that are ready in a strand count as one.
///
/// Destroyed, it destroys the handlers that it has not called.
/// Threads: `run` and its kin from one at a time; `stop` and the executor from any. What is begun on another thread
/// than the one that runs it is posted there.
class io_context {
public:
    using executor_type = plumb::io_context::executor_type;

    /// Over the best multiplexer that works here.
    io_context() = default;
    explicit io_context(int /*concurrency_hint*/) {}
    /// Over this one.
    explicit io_context(std::unique_ptr<plumb::io_multiplexer> m) : context_(std::move(m)) {}

    [[nodiscard]] executor_type get_executor() const noexcept { return context_.get_executor(); }

    /// Calls handlers until nothing is left that could happen, or until `stop`.
    /// @return how many; throws what a handler throws, and what the system gives to the wait
    std::size_t run() { return call(any_number, {}); }
    std::size_t run_one() { return call(1, {}); }
    template <class Rep, class Period>
    std::size_t run_for(std::chrono::duration<Rep, Period> const& d) {
        return call(any_number, plumb::io_multiplexer::steady_now() + d);
    }
    template <class Duration>
    std::size_t
    run_until(std::chrono::time_point<std::chrono::steady_clock, Duration> const& when) {
        return call(any_number, when);
    }
    /// Only those that are ready.
    std::size_t poll() { return call(any_number, std::chrono::nanoseconds(0)); }
    std::size_t poll_one() { return call(1, std::chrono::nanoseconds(0)); }

    /// Ends `run` and its kin, now and until `restart`. Any thread.
    void stop() {
        stopped_.store(true);
        context_.multiplexer().wake();
    }
    [[nodiscard]] bool stopped() const noexcept { return stopped_.load(); }
    void restart() { stopped_.store(false); }

    [[nodiscard]] plumb::io_context& lowest_layer() noexcept { return context_; }

private:
    static constexpr auto any_number = std::numeric_limits<std::size_t>::max();

    class running {
    public:
        explicit running(handler_calls& calls) noexcept
            : outer_(std::exchange(handler_calls::here, &calls)) {}
        running(running const&) = delete;
        running& operator=(running const&) = delete;
        ~running() { handler_calls::here = outer_; }

    private:
        handler_calls* outer_;
    };

    std::size_t call(std::size_t most, plumb::deadline limit) {
        running const scope(calls_);
        std::size_t const before = calls_.called;
        while (calls_.called - before < most && !stopped_.load()) {
            int const done = context_.run_some(1, limit).value();
            if (!calls_.thrown.empty()) {
                auto const first = std::move(calls_.thrown.front());
                calls_.thrown.pop_front();
                std::rethrow_exception(first);
            }
            if (done == 0) {
                stopped_.store(true);  // out of work
            } else if (done < 0 && over(limit)) {
                break;
            }
        }
        return calls_.called - before;
    }

    static bool over(plumb::deadline limit) noexcept {
        return !limit.is_infinite() &&
               limit.due_after(0) <= plumb::io_multiplexer::steady_now().time_since_epoch().count();
    }

    handler_calls calls_;
    std::atomic<bool> stopped_{false};
    plumb::io_context context_;
};

}  // namespace networking_ts
