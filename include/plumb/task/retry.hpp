// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/async_wait.hpp>
#include <plumb/task/cancellation.hpp>
#include <plumb/task/task.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <exception>
#include <type_traits>

namespace plumb {

/// How often to try, and how long to pause in between: each pause is `factor` times the one before.
struct backoff {
    int attempts = 5;
    std::chrono::nanoseconds first_pause = std::chrono::milliseconds(100);
    std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);
    int factor = 2;
    /// Whether another attempt may help; null: after every failure.
    bool (*worthwhile)(std::exception_ptr const& failure) = nullptr;
};

/// Awaits the task that `attempt` makes, and another one after each failure, until one succeeds. Throws the exception
/// of the last one. A task that was cancelled is not tried again, and a stop request ends a pause.
/// Threads: on an executor of an `io_context`. Allocates: its frame, from the pool.
template <std::invocable F>
std::invoke_result_t<F&> retry(backoff how, F attempt) {
    auto pause = std::min(how.first_pause, how.longest_pause);
    for (int made = 1;; ++made) {
        auto t = attempt();
        co_await t.finished();
        if (!t.result().failed() || made >= how.attempts) {
            co_return t.take();
        }
        if (auto const failure = t.result().exception();
            is_cancellation(failure) || (how.worthwhile != nullptr && !how.worthwhile(failure))) {
            co_return t.take();
        }
        auto const waited = co_await co_wait(pause);
        if (!waited) {
            throw_error(waited.error(), "retry");
        }
        pause = pause > how.longest_pause / how.factor ? how.longest_pause : pause * how.factor;
    }
}

}  // namespace plumb
