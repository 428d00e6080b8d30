// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/atomic.hpp>
#include <plumb/exec/work.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace plumb {

/// The queue of one thread of a pool: its owner pushes and pops the newest, others steal the oldest.
///
/// A ring of bounded size in the manner of Chase and Lev. What is between `top_` and `bottom_` is queued. The owner alone
/// moves `bottom_`; `top_` only grows, by whoever takes the oldest, so that of two who want the last item one gets it.
/// Places are written before `bottom_` passes them; what a thief read of one that was used again meanwhile is never
/// taken, because `top_` has moved.
/// Sequentially consistent: the owner's step back of `bottom_` and its look at `top_` mustn't change places, nor a push
/// and the look for threads that sleep.
/// Threads: `push`, `pop` the owner's; the rest any. Allocates: never.
class work_deque {
public:
    static constexpr std::size_t capacity = 256;

    /// @return false where it is full
    bool push(work& item) noexcept {
        std::int64_t const bottom = bottom_.load(std::memory_order_relaxed);
        if (bottom - top_.load() >= static_cast<std::int64_t>(capacity)) {
            return false;
        }
        place(bottom).store(&item, std::memory_order_relaxed);
        bottom_.store(bottom + 1);
        return true;
    }

    /// @return the newest, or null
    work* pop() noexcept {
        std::int64_t const last = bottom_.load(std::memory_order_relaxed) - 1;
        if (top_.load(std::memory_order_relaxed) > last) {
            return nullptr;  // without a write, for what only the owner fills
        }
        bottom_.store(last);
        std::int64_t top = top_.load();
        if (top < last) {
            return place(last).load(std::memory_order_relaxed);
        }
        // The only one, which a thief may want too, or has.
        work* const item = top == last && top_.compare_exchange_strong(top, top + 1)
                               ? place(last).load(std::memory_order_relaxed)
                               : nullptr;
        bottom_.store(last + 1);
        return item;
    }

    /// @return the oldest; null where there is none
    work* steal() noexcept {
        std::int64_t top = top_.load();
        while (top < bottom_.load()) {
            work* const item = place(top).load(std::memory_order_relaxed);
            if (top_.compare_exchange_strong(top, top + 1)) {
                return item;
            }
        }
        return nullptr;
    }

    [[nodiscard]] bool empty() const noexcept { return top_.load() >= bottom_.load(); }

private:
    atomic<work*>& place(std::int64_t at) noexcept {
        return ring_[static_cast<std::size_t>(at) % capacity];
    }

    // Thieves write the one, the owner the other.
    alignas(64) atomic<std::int64_t> top_{0};
    alignas(64) atomic<std::int64_t> bottom_{0};
    std::array<atomic<work*>, capacity> ring_{};
};

}  // namespace plumb
