// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

namespace plumb {

/// The largest size that is recycled.
inline constexpr std::size_t pooled_memory_limit = std::size_t{128} * 1024;

/// What blocks are aligned to: a line of the cache, for whose sake locals of coroutines are over-aligned.
inline constexpr std::size_t pooled_memory_alignment = 64;

/// What a thread keeps of pooled memory: blocks by size class. Here so that both ways through it are inlined, where the
/// compiler mostly knows the size.
class pooled_lists {
public:
    static constexpr std::size_t step = 64;           // small classes are multiples of this
    static constexpr std::size_t small_limit = 4096;  // above, classes are powers of two
    static constexpr std::size_t small_classes = small_limit / step + 1;  // the first for 0 bytes
    static constexpr std::size_t classes = small_classes + 5;
    static_assert(small_limit << 5 == pooled_memory_limit);

    static constexpr std::size_t class_of(std::size_t bytes) noexcept {
        if (bytes <= small_limit) {
            return (bytes + step - 1) / step;
        }
        return small_classes + static_cast<std::size_t>(std::bit_width((bytes - 1) / small_limit)) -
               1;
    }

    struct block {
        block* next;
    };

    struct list {
        block* first = nullptr;
        std::uint32_t size = 0;
        std::uint32_t most = 0;  // none before the thread's first block, and after its end

        [[nodiscard]] bool full() const noexcept { return size >= most; }

        void push(void* b) noexcept {
            first = ::new (b) block{first};
            ++size;
        }
        block* pop() noexcept {
            block* const b = first;
            first = b->next;
            --size;
            return b;
        }
    };

    list of[classes];
};

extern constinit thread_local pooled_lists pooled_lists_here;

[[nodiscard]] void* pooled_allocate_elsewhere(std::size_t bytes) noexcept;
void pooled_deallocate_elsewhere(void* block, std::size_t bytes) noexcept;

/// Memory for coroutine frames and i/o buffers, recycled by size class, so that a steady state allocates nothing.
///
/// A freed block goes to a list of the freeing thread; a full list hands half of itself to a shared overflow, and
/// a full overflow frees to the heap. Blocks of a thread that ended go to the overflow too. Sizes above
/// `pooled_memory_limit` come from the heap directly. A library built with the address sanitizer recycles nothing, so
/// that a use after free is seen.
/// Threads: any; a block may be freed on another thread. Exceptions: none.
/// @return the block, aligned to `pooled_memory_alignment`, or null when there is no memory
[[nodiscard]] inline void* pooled_allocate(std::size_t bytes) noexcept {
    if (bytes <= pooled_memory_limit) {
        auto& list = pooled_lists_here.of[pooled_lists::class_of(bytes)];
        if (list.first != nullptr) [[likely]] {
            return list.pop();
        }
    }
    return pooled_allocate_elsewhere(bytes);
}

/// @param bytes  what was passed to `pooled_allocate`
inline void pooled_deallocate(void* block, std::size_t bytes) noexcept {
    if (bytes <= pooled_memory_limit) {
        auto& list = pooled_lists_here.of[pooled_lists::class_of(bytes)];
        if (!list.full()) [[likely]] {
            list.push(block);
            return;
        }
    }
    pooled_deallocate_elsewhere(block, bytes);
}

/// Whether this build recycles at all.
[[nodiscard]] bool pooled_memory_recycles() noexcept;

}  // namespace plumb
