// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/task/event.hpp>

#include <atomic>
#include <cstddef>

namespace plumb {

/// Counts down, once; coroutines wait until it has reached zero.
///
/// State: `left_`, and a manual `event` that whoever counts down to zero sets.
/// Threads: any. Allocates: never.
class latch {
public:
    explicit latch(std::size_t count) noexcept
        : left_(count), done_(event::reset_by::hand, count == 0) {}

    /// Not below zero. It outlives those that wait for it until they were resumed.
    void count_down(std::size_t by = 1) noexcept {
        std::size_t const before = left_.fetch_sub(by);
        require(before >= by, "a latch was counted down more often than it counts");
        if (before == by && by != 0) {
            done_.set();
        }
    }
    [[nodiscard]] bool try_wait() const noexcept { return done_.is_set(); }

    /// Awaits zero. Errors: operation_canceled, also for a stop from before.
    event::wait_awaitable wait() noexcept { return done_.wait(); }
    /// Counts down by one, and awaits zero.
    event::wait_awaitable arrive_and_wait() noexcept {
        count_down();
        return wait();
    }

private:
    std::atomic<std::size_t> left_;
    event done_;
};

}  // namespace plumb
