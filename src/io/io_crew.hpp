// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/work_queue.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace plumb {

class io_multiplexer;

/// The threads that share a multiplexer: one leads, which drives it, and the rest run posted work or wait to lead.
/// A visitor is a thread that has something to do there which can't be left to the leader: it leads next.
/// Everything is under the mutex.
struct io_crew {
    /// Posted work that a thread runs before it looks whether somebody leads.
    static constexpr int most_at_once = 64;

    std::mutex mutex;
    std::condition_variable changed;
    std::condition_variable free_for_visitor;
    work_queue ready;   // to be run
    work_queue posted;  // after that, so that work that posts itself holds up nothing else
    int waiting = 0;
    int called = 0;                          // of those that wait
    int working = 0;                         // inside posted work
    int visitors = 0;                        // that wait
    io_multiplexer* visitors_own = nullptr;  // of the thread that visits
    bool led = false;
    bool leads_first = false;  // where the number is bounded, leading and working take turns at it
    /// The leader sleeps although no i/o is pending, because others are inside work that may start some.
    bool leader_waits_for_work = false;

    [[nodiscard]] bool has_work() const noexcept { return !ready.empty() || !posted.empty(); }

    /// Whether some thread is inside.
    bool in_use() {
        std::scoped_lock const lock(mutex);
        return led || working != 0 || waiting != 0;
    }

    /// Calls one that waits: there is work, or nobody leads. @return false where nobody is left to call
    bool call_one() noexcept {
        if (waiting == called) {
            return false;
        }
        ++called;
        changed.notify_one();
        return true;
    }

    /// Nobody leads any more.
    void end_lead() noexcept {
        led = leader_waits_for_work = false;
        if (visitors != 0) {
            free_for_visitor.notify_one();
        } else {
            (void)call_one();
        }
    }

    /// @param nanoseconds  negative: until it is called
    void wait(std::unique_lock<std::mutex>& lock, std::int64_t nanoseconds) {
        ++waiting;
        if (nanoseconds < 0) {
            changed.wait(lock);
        } else {
            changed.wait_for(lock, std::chrono::nanoseconds(nanoseconds));
        }
        --waiting;
        called -= called != 0 ? 1 : 0;
    }
};

}  // namespace plumb
