// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/pooled_memory.hpp>

#include "support/failing_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

constexpr std::array sizes{std::size_t{0},          std::size_t{1},          std::size_t{63},
                           std::size_t{64},         std::size_t{65},         std::size_t{4095},
                           std::size_t{4096},       std::size_t{4097},       std::size_t{8192},
                           std::size_t{8193},       pooled_memory_limit - 1, pooled_memory_limit,
                           pooled_memory_limit + 1, 4 * pooled_memory_limit};

TEST(pooled_memory, gives_as_much_as_was_asked_for_aligned_for_everything) {
    for (auto const size : sizes) {
        void* const block = pooled_allocate(size);
        ASSERT_NE(block, nullptr) << size;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % pooled_memory_alignment, 0u) << size;
        std::memset(block, 0xaa, size);
        pooled_deallocate(block, size);
    }
}

TEST(pooled_memory, gives_a_freed_block_again) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build does not recycle, so that a use after free is seen";
    }
    for (auto const size : sizes) {
        if (size > pooled_memory_limit) {
            continue;
        }
        void* const block = pooled_allocate(size);
        pooled_deallocate(block, size);
        void* const again = pooled_allocate(size);
        EXPECT_EQ(again, block) << size;
        pooled_deallocate(again, size);
    }
}

TEST(pooled_memory, live_blocks_never_overlap) {
    std::mt19937 random(1);
    std::vector<std::pair<unsigned char*, std::size_t>> live;
    for (int step = 0; step < 20'000; ++step) {
        if (live.size() < 200 && random() % 3 != 0) {
            std::size_t const size = random() % 2 == 0 ? random() % 300 : random() % 20'000;
            auto* const block = static_cast<unsigned char*>(pooled_allocate(size));
            ASSERT_NE(block, nullptr);
            std::memset(block, static_cast<int>(size % 251), size);
            live.emplace_back(block, size);
        } else if (!live.empty()) {
            std::swap(live[random() % live.size()], live.back());
            auto const [block, size] = live.back();
            for (std::size_t i = 0; i < size; ++i) {
                ASSERT_EQ(block[i], size % 251);
            }
            pooled_deallocate(block, size);
            live.pop_back();
        }
    }
    for (auto const& [block, size] : live) {
        pooled_deallocate(block, size);
    }
}

TEST(pooled_memory, many_blocks_come_and_go) {
    // More than a thread's list and the shared overflow keep.
    for (std::size_t const size : {std::size_t{64}, std::size_t{100'000}}) {
        std::vector<void*> blocks;
        for (std::size_t total = 0; total < 4'000'000 || blocks.size() < 100; total += size) {
            blocks.push_back(pooled_allocate(size));
            ASSERT_NE(blocks.back(), nullptr);
        }
        for (void* const block : blocks) {
            pooled_deallocate(block, size);
        }
    }
}

TEST(pooled_memory, keeps_no_more_than_its_limits) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build does not recycle, so that a use after free is seen";
    }
    constexpr std::size_t size = pooled_memory_limit;
    constexpr int most = 16 + 8 * 16;  // of a thread, and of all: as many of the largest blocks
    constexpr int blocks = 2 * most;
    auto const take_and_free = [] {
        failing_memory const memory;
        std::vector<void*> taken;
        for (int i = 0; i < blocks; ++i) {
            taken.push_back(pooled_allocate(size));
        }
        for (void* const block : taken) {
            pooled_deallocate(block, size);
        }
        return memory.taken();
    };
    (void)take_and_free();
    int const new_blocks = take_and_free();
    EXPECT_GE(new_blocks, blocks - most);
    EXPECT_LT(new_blocks, blocks);
}

TEST(pooled_memory, without_memory_gives_null_and_goes_on) {
    emptied_pool const held;
    {
        failing_memory const memory(1);
        EXPECT_EQ(pooled_allocate(100), nullptr);
        EXPECT_TRUE(memory.failed());
    }
    {
        failing_memory const memory(1);
        EXPECT_EQ(pooled_allocate(2 * pooled_memory_limit), nullptr);
    }
    void* const block = pooled_allocate(100);
    EXPECT_NE(block, nullptr);
    pooled_deallocate(block, 100);
}

TEST(pooled_memory, blocks_may_be_freed_on_other_threads) {
    std::mutex mutex;
    std::vector<std::pair<void*, std::size_t>> handed_over;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int i = 0; i < 5000; ++i) {
                std::size_t const size = random() % 2000;
                void* const block = pooled_allocate(size);
                std::memset(block, 1, size);
                std::pair<void*, std::size_t> other{nullptr, 0};
                {
                    std::scoped_lock const lock(mutex);
                    handed_over.emplace_back(block, size);
                    if (handed_over.size() > 100) {
                        std::swap(handed_over[random() % handed_over.size()], handed_over.back());
                        other = handed_over.back();
                        handed_over.pop_back();
                    }
                }
                if (other.first != nullptr) {
                    std::memset(other.first, 2, other.second);
                    pooled_deallocate(other.first, other.second);
                }
            }
        });
    }
    for (auto& t : threads) {
        t.join();
    }
    for (auto const& [block, size] : handed_over) {
        pooled_deallocate(block, size);
    }
}

TEST(pooled_memory, is_used_while_a_thread_ends) {
    struct frees_late {
        void* block = nullptr;
        ~frees_late() {
            pooled_deallocate(block, 100);
            void* const more = pooled_allocate(100);
            std::memset(more, 3, 100);
            pooled_deallocate(more, 100);
        }
    };
    for (int i = 0; i < 3; ++i) {
        std::thread([] {
            // Made before the thread's first use of the pool, so it is destroyed after the pool's own.
            static thread_local frees_late late;
            late.block = pooled_allocate(100);
        }).join();
    }
}

TEST(pooled_memory, what_a_thread_leaves_is_used_by_others) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build does not recycle, so that a use after free is seen";
    }
    constexpr std::size_t size = 3000;
    void* left = nullptr;
    std::thread([&] {
        left = pooled_allocate(size);
        pooled_deallocate(left, size);
    }).join();
    bool found = false;
    std::thread([&] {
        std::vector<void*> blocks;
        while (!found && blocks.size() < 100) {
            blocks.push_back(pooled_allocate(size));
            found = blocks.back() == left;
        }
        for (void* const block : blocks) {
            pooled_deallocate(block, size);
        }
    }).join();
    EXPECT_TRUE(found);
}

}  // namespace
}  // namespace plumb::test
