// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/strand.hpp>

#include <plumb/exec/manual_executor.hpp>
#include <plumb/exec/thread_pool.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace plumb::test {
namespace {

using manual_strand = strand<manual_executor::executor_type>;
using pool_strand = strand<thread_pool::executor_type>;

static_assert(executor<manual_strand> && executor<pool_strand> && executor<strand<pool_strand>>);
static_assert(sizeof(pool_strand) == sizeof(void*));

/// Calls a function when it runs.
struct call : work {
    explicit call(std::function<void()> f)
        : work([](work& self) noexcept { static_cast<call&>(self).what(); }), what(std::move(f)) {}
    std::function<void()> what;
};

class strand_test : public ::testing::Test {
protected:
    manual_executor loop;
    std::string order;
};

TEST_F(strand_test, runs_in_the_order_of_the_posts) {
    manual_strand const s(loop.get_executor());
    call a([&] { order += 'a'; });
    call b([&] { order += 'b'; });
    call c([&] { order += 'c'; });
    for (call* const item : {&a, &b, &c}) {
        s.post(item);
    }
    EXPECT_EQ(order, "") << "a post never runs inline";
    loop.run();
    EXPECT_EQ(order, "abc");
}

TEST_F(strand_test, is_one_item_of_its_executor_however_much_is_queued) {
    manual_strand const s(loop.get_executor());
    call a([&] { order += 'a'; });
    call b([&] { order += 'b'; });
    s.post(&a);
    s.post(&b);
    EXPECT_EQ(loop.count(), 1u);
    loop.run();
    EXPECT_EQ(order, "ab");
}

TEST_F(strand_test, goes_to_the_end_of_the_queue_after_a_batch) {
    manual_strand const s(loop.get_executor());
    std::vector<call> many;
    many.reserve(65);
    for (int i = 0; i < 65; ++i) {
        many.emplace_back([&] { order += 's'; });
        s.post(&many.back());
    }
    call other([&] { order += 'o'; });
    loop.get_executor().post(&other);
    loop.run();
    EXPECT_EQ(order, std::string(64, 's') + "os");
}

TEST_F(strand_test, what_an_item_posts_runs_after_it) {
    manual_strand const s(loop.get_executor());
    call second([&] { order += '2'; });
    call first([&] {
        s.post(&second);
        order += '1';
    });
    s.post(&first);
    loop.run();
    EXPECT_EQ(order, "12");
}

TEST_F(strand_test, dispatches_inline_only_inside_that_very_strand) {
    manual_strand const one(loop.get_executor());
    manual_strand const other(loop.get_executor());
    auto const h = std::noop_coroutine();
    bool ran = false;
    call inside_one([&] {
        EXPECT_TRUE(one.running_in_this_thread());
        EXPECT_TRUE(loop.get_executor().running_in_this_thread());
        EXPECT_FALSE(other.running_in_this_thread());
        EXPECT_EQ(one.dispatch(h), h);
        ran = true;
    });
    one.post(&inside_one);
    loop.run();
    EXPECT_TRUE(ran);
    EXPECT_FALSE(one.running_in_this_thread());

    ran = false;
    call outside([&] {
        EXPECT_FALSE(one.running_in_this_thread()) << "inside its executor is not inside it";
        ran = true;
    });
    loop.get_executor().post(&outside);
    loop.run();
    EXPECT_TRUE(ran);
}

TEST_F(strand_test, a_suspended_coroutine_has_left_it) {
    manual_strand const s(loop.get_executor());
    gate g;
    auto const waits = [&]() -> task<> {
        EXPECT_TRUE(s.running_in_this_thread());
        order += '1';
        co_await g;
        order += '3';
    };
    auto const passes = [&]() -> task<> {
        order += '2';
        co_return;
    };
    async_run(s, waits());
    async_run(s, passes());
    loop.run();
    EXPECT_EQ(order, "12");
    g.open();
    EXPECT_EQ(order, "123");
}

TEST_F(strand_test, over_a_strand_is_inside_of_both) {
    manual_strand const below(loop.get_executor());
    strand const above(below);
    bool ran = false;
    call item([&] {
        EXPECT_TRUE(above.running_in_this_thread());
        EXPECT_TRUE(below.running_in_this_thread());
        ran = true;
    });
    above.post(&item);
    loop.run();
    EXPECT_TRUE(ran);
}

TEST_F(strand_test, copies_are_equal_and_share_the_queue) {
    manual_strand const one(loop.get_executor());
    manual_strand const copy = one;
    manual_strand other(loop.get_executor());
    EXPECT_EQ(one, copy);
    EXPECT_NE(one, other);
    EXPECT_EQ(executor_ref(one), executor_ref(copy));
    EXPECT_NE(executor_ref(one), executor_ref(one.inner())) << "it wraps, it is not the same";
    other = one;
    EXPECT_EQ(one, other);
}

TEST_F(strand_test, outlives_its_copies_while_something_is_queued) {
    call item([&] { order += 'r'; });
    {
        manual_strand const s(loop.get_executor());
        s.post(&item);
    }
    loop.run();
    EXPECT_EQ(order, "r");
}

TEST_F(strand_test, drops_what_is_queued_when_its_executor_ends) {
    struct dropped_item : owned_work {
        explicit dropped_item(int& count)
            : owned_work([](owned_work& self, fate f) noexcept {
                  EXPECT_EQ(f, fate::dropped);
                  ++*static_cast<dropped_item&>(self).drops;
              }),
              drops(&count) {}
        int* drops;
    };
    int drops = 0;
    dropped_item a(drops);
    dropped_item b(drops);
    std::optional<manual_executor> ends(std::in_place);
    manual_strand const s(ends->get_executor());
    s.post(&a);
    s.post(&b);
    ends.reset();
    EXPECT_EQ(drops, 2);
}

TEST_F(strand_test, allocates_nothing_once_it_is_made) {
    manual_strand const s(loop.get_executor());
    int ran = 0;
    call item([&] { ++ran; });
    auto const before = heap_allocations();
    for (int i = 0; i < 1000; ++i) {
        s.post(&item);
        loop.run();
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
    EXPECT_EQ(ran, 1000);
}

TEST(strand_thread_test, never_runs_two_items_at_once_and_keeps_each_producers_order) {
    constexpr int producers = 3;
    constexpr int items = 3000;
    struct numbered : work {
        numbered(std::vector<std::vector<int>>& l, std::atomic<int>& i, int p, int n)
            : work([](work& self) noexcept { static_cast<numbered&>(self).run(); }),
              log(&l),
              inside(&i),
              producer(p),
              number(n) {}
        void run() noexcept {
            EXPECT_EQ(inside->fetch_add(1), 0);
            (*log)[static_cast<std::size_t>(producer)].push_back(number);
            EXPECT_EQ(inside->fetch_sub(1), 1);
        }
        std::vector<std::vector<int>>* log;
        std::atomic<int>* inside;
        int producer;
        int number;
    };
    thread_pool pool(4);
    std::vector<std::vector<int>> log(producers);
    std::atomic<int> inside = 0;
    std::vector<std::vector<numbered>> work_of(producers);
    {
        pool_strand const s(pool.get_executor());
        std::vector<std::jthread> threads;
        for (int p = 0; p < producers; ++p) {
            auto& mine = work_of[static_cast<std::size_t>(p)];
            for (int n = 0; n < items; ++n) {
                mine.emplace_back(log, inside, p, n);
            }
            threads.emplace_back([&mine, s] {
                for (auto& item : mine) {
                    s.post(&item);
                }
            });
        }
    }
    pool.join();
    for (auto const& numbers : log) {
        ASSERT_EQ(numbers.size(), static_cast<std::size_t>(items));
        for (int n = 0; n < items; ++n) {
            ASSERT_EQ(numbers[static_cast<std::size_t>(n)], n);
        }
    }
}

// A pool's thread takes its newest work first.
TEST(strand_thread_test, gives_way_in_a_pool_after_a_batch) {
    thread_pool pool(1);
    pool_strand const flooded(pool.get_executor());
    pool_strand const other(pool.get_executor());
    std::string order;
    std::vector<call> many;
    many.reserve(256);
    call one([&] { order += 'o'; });
    call begin([&] {
        for (int i = 0; i < 256; ++i) {
            many.emplace_back([&] { order += 's'; });
            flooded.post(&many.back());
        }
        other.post(&one);
    });
    pool.get_executor().post(&begin);
    pool.join();
    EXPECT_EQ(order.size(), 257u);
    EXPECT_LE(order.find('o'), 64u) << order;
}

TEST(strand_thread_test, is_destroyed_by_whoever_is_last) {
    for (int round = 0; round < 200; ++round) {
        thread_pool pool(2);
        std::atomic<int> ran = 0;
        call a([&] { ++ran; });
        call b([&] { ++ran; });
        {
            pool_strand const s(pool.get_executor());
            s.post(&a);
            s.post(&b);
        }
        pool.join();
        ASSERT_EQ(ran, 2);
    }
}

}  // namespace
}  // namespace plumb::test
