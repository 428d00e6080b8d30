// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/atomic.hpp>
#include <plumb/exec/work_queue.hpp>

namespace plumb {

/// Work that any thread or signal handler may push and one thread takes.
///
/// State: `newest_` heads a list from the newest item to the oldest. A push is one compare-and-swap loop, a take
/// is one exchange followed by a reversal, so items of one producer keep their order. The node belongs to the
/// inbox between the two. Sequentially consistent, because the consumer decides on it whether to sleep.
/// Threads: push from any thread and from signal handlers; take from one thread. Allocates: never.
class work_inbox {
public:
    void push(work& item) noexcept {
        work* newest = newest_.load();
        do {
            item.next_ = newest;
        } while (!newest_.compare_exchange_weak(newest, &item));
    }

    [[nodiscard]] bool empty() const noexcept { return newest_.load() == nullptr; }

    /// @return everything that was pushed, oldest first
    work_queue take() noexcept {
        work* newest = newest_.exchange(nullptr);
        work* oldest = nullptr;
        while (newest != nullptr) {
            work* const older = newest->next_;
            newest->next_ = oldest;
            oldest = newest;
            newest = older;
        }
        work_queue items;
        while (oldest != nullptr) {
            work* const newer = oldest->next_;
            items.push(*oldest);
            oldest = newer;
        }
        return items;
    }

private:
    atomic<work*> newest_{nullptr};
};

}  // namespace plumb
