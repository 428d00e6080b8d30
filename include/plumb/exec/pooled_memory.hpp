// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace plumb {

/// Memory for coroutine frames and i/o buffers, recycled by size class, so that a steady state allocates nothing.
///
/// A freed block goes to a list of the freeing thread; a full list hands half of itself to a shared overflow, and
/// a full overflow frees to the heap. Blocks of a thread that ended go to the overflow too. Sizes above
/// `pooled_memory_limit` come from the heap directly. Built with the address sanitizer nothing is recycled, so
/// that a use after free is seen.
/// Threads: any; a block may be freed on another thread. Exceptions: none.
/// @return the block, aligned to `pooled_memory_alignment`, or null when there is no memory
[[nodiscard]] void* pooled_allocate(std::size_t bytes) noexcept;

/// @param bytes  what was passed to `pooled_allocate`
void pooled_deallocate(void* block, std::size_t bytes) noexcept;

/// What blocks are aligned to: a line of the cache, for whose sake locals of coroutines are over-aligned.
inline constexpr std::size_t pooled_memory_alignment = 64;

/// The largest size that is recycled.
inline constexpr std::size_t pooled_memory_limit = std::size_t{128} * 1024;

/// Whether this build recycles at all.
[[nodiscard]] bool pooled_memory_recycles() noexcept;

}  // namespace plumb
