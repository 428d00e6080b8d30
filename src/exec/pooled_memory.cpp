// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/pooled_memory.hpp>

#include "platform/seam.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>

// State: a block is in use, in the list of one thread, or in the shared overflow. Only its thread touches a
// thread's lists. They are trivially destructible, so they can still be used while other thread-local objects are
// destroyed; `thread_guard` empties them when the thread ends, and leaves none of them any room, which turns later
// frees to the overflow. Before the thread's first block they have no room either, which is what makes the guard.
namespace plumb {

constinit thread_local pooled_lists pooled_lists_here;
static_assert(std::is_trivially_destructible_v<pooled_lists>);

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool recycles = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool recycles = false;
#else
constexpr bool recycles = true;
#endif
#else
constexpr bool recycles = true;
#endif

using block = pooled_lists::block;
using block_list = pooled_lists::list;
constexpr std::size_t classes = pooled_lists::classes;

constexpr std::size_t class_bytes(std::size_t index) noexcept {
    constexpr std::size_t small = pooled_lists::small_classes;
    return index < small ? std::max<std::size_t>(index, 1) * pooled_lists::step
                         : pooled_lists::small_limit << (index - small + 1);
}

constexpr std::size_t class_bytes_of(std::size_t bytes) noexcept {
    return class_bytes(pooled_lists::class_of(bytes));
}
static_assert(class_bytes_of(1) == 64 && class_bytes_of(64) == 64 && class_bytes_of(65) == 128);
static_assert(class_bytes_of(4097) == 8192 && class_bytes_of(8192) == 8192);
static_assert(class_bytes_of(8193) == 16384 &&
              pooled_lists::class_of(pooled_memory_limit) == classes - 1);

/// How many blocks a thread keeps of a class: up to 256 KiB of it, at least sixteen, so that a turn of a busy loop in
/// which each connection holds a buffer recycles them all between here and the overflow.
constexpr auto local_limits = [] {
    std::array<std::uint32_t, classes> limits{};
    for (std::size_t index = 0; index < classes; ++index) {
        std::size_t const fit = std::size_t{256} * 1024 / class_bytes(index);
        limits[index] = static_cast<std::uint32_t>(fit < 16 ? 16 : fit);
    }
    return limits;
}();
constexpr std::uint32_t local_limit(std::size_t index) noexcept { return local_limits[index]; }

constexpr std::uint32_t shared_limit(std::size_t index) noexcept { return local_limit(index) * 8; }

struct shared_class {
    std::mutex mutex;
    block_list blocks;
    std::atomic<std::uint32_t> available{
        0};  // mirrors blocks.size: an empty overflow is seen without the lock
};

constinit std::array<shared_class, classes> shared;

void give_to_shared(std::size_t index, block_list& from, std::uint32_t keep) noexcept {
    shared_class& overflow = shared[index];
    {
        std::scoped_lock const lock(overflow.mutex);
        while (from.size > keep && overflow.blocks.size < shared_limit(index)) {
            overflow.blocks.push(from.pop());
        }
        overflow.available.store(overflow.blocks.size, std::memory_order_relaxed);
    }
    while (from.size > keep) {
        platform::os().give_memory(from.pop());
    }
}

void take_from_shared(std::size_t index, block_list& into) noexcept {
    shared_class& overflow = shared[index];
    if (overflow.available.load(std::memory_order_relaxed) == 0) {
        return;
    }
    std::scoped_lock const lock(overflow.mutex);
    while (overflow.blocks.size != 0 && into.size < local_limit(index) / 2) {
        into.push(overflow.blocks.pop());
    }
    overflow.available.store(overflow.blocks.size, std::memory_order_relaxed);
}

enum class thread_phase : std::uint8_t { unused, alive, ended };
constinit thread_local thread_phase phase = thread_phase::unused;

struct thread_guard {
    // User-provided so that naming the object constructs it.
    thread_guard() noexcept {
        for (std::size_t index = 0; index < classes; ++index) {
            pooled_lists_here.of[index].most = local_limit(index);
        }
        phase = thread_phase::alive;
    }
    ~thread_guard() {
        for (std::size_t index = 0; index < classes; ++index) {
            block_list& list = pooled_lists_here.of[index];
            list.most = 0;
            if (list.size != 0) {
                give_to_shared(index, list, 0);
            }
        }
        phase = thread_phase::ended;
    }
};

/// @return whether this thread keeps blocks
bool join_thread() noexcept {
    if (phase == thread_phase::unused) {
        static thread_local thread_guard guard;
        (void)&guard;
    }
    return phase == thread_phase::alive;
}

}  // namespace

void* pooled_allocate_elsewhere(std::size_t bytes) noexcept {
    if (!recycles || bytes > pooled_memory_limit) {
        return platform::os().take_memory(bytes);
    }
    std::size_t const index = pooled_lists::class_of(bytes);
    if (join_thread()) {
        block_list& list = pooled_lists_here.of[index];
        take_from_shared(index, list);
        if (list.first != nullptr) {
            return list.pop();
        }
    }
    return platform::os().take_memory(class_bytes(index));
}

void pooled_deallocate_elsewhere(void* memory, std::size_t bytes) noexcept {
    if (!recycles || bytes > pooled_memory_limit) {
        platform::os().give_memory(memory);
        return;
    }
    std::size_t const index = pooled_lists::class_of(bytes);
    if (!join_thread()) {
        block_list single;
        single.push(memory);
        give_to_shared(index, single, 0);
        return;
    }
    block_list& list = pooled_lists_here.of[index];
    list.push(memory);
    if (list.size > local_limit(index)) {
        give_to_shared(index, list, local_limit(index) / 2);
    }
}

bool pooled_memory_recycles() noexcept { return recycles; }

}  // namespace plumb
