// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/pooled_memory.hpp>

#include "platform/seam.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

// State: a block is in use, in the list of one thread, or in the shared overflow. Only its thread touches a
// thread's lists. `thread_state` is trivially destructible, so it can still be read while other thread-local
// objects are destroyed; `guard` empties the lists when the thread ends and turns later frees to the overflow.
namespace plumb {
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

constexpr std::size_t step = 64;           // small classes are multiples of this
constexpr std::size_t small_limit = 4096;  // above, classes are powers of two
constexpr std::size_t small_classes = small_limit / step + 1;  // the first for 0 bytes
constexpr std::size_t classes = small_classes + 5;
static_assert(small_limit << 5 == pooled_memory_limit);

struct block {
    block* next;
};

struct block_list {
    block* head = nullptr;
    std::uint32_t size = 0;

    void push(block* b) noexcept {
        b->next = head;
        head = b;
        ++size;
    }

    block* pop() noexcept {
        block* const b = head;
        head = b->next;
        --size;
        return b;
    }
};

constexpr std::size_t class_of(std::size_t bytes) noexcept {
    if (bytes <= small_limit) {
        return (bytes + step - 1) / step;
    }
    return small_classes + std::bit_width((bytes - 1) / small_limit) - 1;
}

constexpr std::size_t class_bytes(std::size_t index) noexcept {
    return index < small_classes ? std::max<std::size_t>(index, 1) * step
                                 : small_limit << (index - small_classes + 1);
}

static_assert(class_bytes(class_of(1)) == 64 && class_bytes(class_of(64)) == 64 &&
              class_bytes(class_of(65)) == 128);
static_assert(class_bytes(class_of(4097)) == 8192 && class_bytes(class_of(8192)) == 8192);
static_assert(class_bytes(class_of(8193)) == 16384 && class_of(pooled_memory_limit) == classes - 1);

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

struct thread_state {
    std::array<block_list, classes> lists;
    thread_phase phase = thread_phase::unused;
};

static_assert(std::is_trivially_destructible_v<thread_state>);
constinit thread_local thread_state local;

struct thread_guard {
    // User-provided so that naming the object constructs it.
    thread_guard() noexcept { local.phase = thread_phase::alive; }
    ~thread_guard() {
        for (std::size_t index = 0; index < classes; ++index) {
            if (local.lists[index].size != 0) {
                give_to_shared(index, local.lists[index], 0);
            }
        }
        local.phase = thread_phase::ended;
    }
};

[[gnu::noinline]] bool join_thread() noexcept {
    if (local.phase == thread_phase::ended) {
        return false;
    }
    static thread_local thread_guard guard;
    (void)&guard;
    return true;
}

[[gnu::noinline]] void* allocate_slow(std::size_t index) noexcept {
    if (local.phase == thread_phase::alive || join_thread()) {
        block_list& list = local.lists[index];
        take_from_shared(index, list);
        if (list.head != nullptr) {
            return list.pop();
        }
    }
    return platform::os().take_memory(class_bytes(index));
}

[[gnu::noinline]] void deallocate_slow(block* b, std::size_t index) noexcept {
    if (local.phase != thread_phase::alive && !join_thread()) {
        block_list single;
        single.push(b);
        give_to_shared(index, single, 0);
        return;
    }
    block_list& list = local.lists[index];
    list.push(b);
    if (list.size > local_limit(index)) {
        give_to_shared(index, list, local_limit(index) / 2);
    }
}

}  // namespace

void* pooled_allocate(std::size_t bytes) noexcept {
    if (!recycles || bytes > pooled_memory_limit) {
        return platform::os().take_memory(bytes);
    }
    std::size_t const index = class_of(bytes);
    block_list& list = local.lists[index];
    return list.head != nullptr ? list.pop() : allocate_slow(index);
}

void pooled_deallocate(void* memory, std::size_t bytes) noexcept {
    if (!recycles || bytes > pooled_memory_limit) {
        platform::os().give_memory(memory);
        return;
    }
    std::size_t const index = class_of(bytes);
    block_list& list = local.lists[index];
    auto* const b = static_cast<block*>(memory);
    if (local.phase == thread_phase::alive && list.size < local_limit(index)) {
        list.push(b);
    } else {
        deallocate_slow(b, index);
    }
}

bool pooled_memory_recycles() noexcept { return recycles; }

}  // namespace plumb
