// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/atomic.hpp>

namespace plumb {

/// A lock of four bytes for what takes a few instructions and never calls out: a coroutine that waits for another holds
/// none. Not recursive. May be destroyed as soon as its last holder has been seen to have left.
///
/// States: free -> held -> free, or held -> contended (somebody sleeps, or may) -> free and one is woken.
/// Threads: any. Allocates: never.
class brief_lock {
public:
    brief_lock() noexcept = default;
    brief_lock(brief_lock const&) = delete;
    brief_lock& operator=(brief_lock const&) = delete;

    void lock() noexcept {
        int expected = open;
        if (!state_.compare_exchange_strong(expected, held)) [[unlikely]] {
            while (state_.exchange(contended) != open) {
                state_.wait(contended);
            }
        }
    }

    void unlock() noexcept {
        if (state_.exchange(open) == contended) [[unlikely]] {
            state_.notify_one();
        }
    }

private:
    static constexpr int open = 0;
    static constexpr int held = 1;
    static constexpr int contended = 2;

    atomic<int> state_{open};
};

}  // namespace plumb
