// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/pooled_memory.hpp>

#include "platform/seam.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace plumb::test {

/// While it lives, the n-th block that the pool takes from the heap can't be had. One at a time, with one thread.
class failing_memory {
public:
    /// @param n  0 fails nothing
    explicit failing_memory(int n = 0) noexcept : table_(platform::os()) {
        inner_ = platform::os();
        left_ = n;
        taken_ = 0;
        table_.take_memory = [](std::size_t bytes) noexcept -> void* {
            if (--left_ == 0) {
                return nullptr;
            }
            ++taken_;
            return inner_.take_memory(bytes);
        };
        before_ = platform::replace_seam(&table_);
    }
    failing_memory(failing_memory const&) = delete;
    failing_memory& operator=(failing_memory const&) = delete;
    ~failing_memory() { platform::replace_seam(before_); }

    /// Whether so many were taken.
    [[nodiscard]] bool failed() const noexcept { return left_ <= 0; }
    /// How many were had.
    [[nodiscard]] int taken() const noexcept { return taken_; }

private:
    static inline platform::seam inner_{};
    static inline int left_ = 0;
    static inline int taken_ = 0;

    platform::seam table_;
    platform::seam const* before_ = nullptr;
};

/// Holds all small blocks that the pool keeps for this thread, so that what is allocated next comes from the heap.
class emptied_pool {
public:
    emptied_pool() {
        failing_memory const counted;
        for (std::size_t size = 64; size <= 4096; size += 64) {
            int const before = counted.taken();
            do {
                held_.emplace_back(pooled_allocate(size), size);
            } while (counted.taken() == before);
        }
        kept_ = held_.size() - static_cast<std::size_t>(counted.taken());
    }
    emptied_pool(emptied_pool const&) = delete;
    emptied_pool& operator=(emptied_pool const&) = delete;
    ~emptied_pool() {
        for (auto const& [block, size] : held_) {
            pooled_deallocate(block, size);
        }
    }

    /// How many blocks the pool had.
    [[nodiscard]] std::size_t kept() const noexcept { return kept_; }

private:
    std::vector<std::pair<void*, std::size_t>> held_;
    std::size_t kept_ = 0;
};

}  // namespace plumb::test
