// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/semaphore.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/task/task_scope.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace plumb::test {
namespace {

class semaphore_test : public ::testing::Test {
protected:
    task<> take(semaphore& s, char name) {
        auto const taken = co_await s.acquire();
        order += taken ? name : '-';
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
};

TEST_F(semaphore_test, gives_permits_until_there_are_none) {
    semaphore s(2);
    launch(take(s, 'a'));
    launch(take(s, 'b'));
    launch(take(s, 'c'));
    EXPECT_EQ(order, "ab");
    EXPECT_EQ(s.available(), 0u);
    EXPECT_FALSE(s.try_acquire());
    s.release();
    EXPECT_EQ(s.available(), 0u) << "it goes to the one that waits";
    loop.run();
    EXPECT_EQ(order, "abc");
    s.release();
    EXPECT_TRUE(s.try_acquire());
}

TEST_F(semaphore_test, serves_who_waits_longest_first) {
    semaphore s(0);
    for (char const name : {'a', 'b', 'c', 'd'}) {
        launch(take(s, name));
    }
    s.release(3);
    loop.run();
    EXPECT_EQ(order, "abc");
    s.release(3);
    loop.run();
    EXPECT_EQ(order, "abcd");
    EXPECT_EQ(s.available(), 2u);
}

TEST_F(semaphore_test, does_not_suspend_where_there_is_a_permit) {
    semaphore s(1);
    auto const once = [&]() -> task<> {
        auto const taken = co_await s.acquire();
        order += taken ? 'a' : '-';
        order += 'b';
    };
    async_run(loop.get_executor(), once());
    EXPECT_TRUE(loop.run_one());
    EXPECT_EQ(order, "ab");
}

TEST_F(semaphore_test, a_cancelled_wait_holds_no_permit) {
    semaphore s(0);
    stop_source stop(loop.get_executor());
    launch(take(s, 'a'), stop.token());
    launch(take(s, 'b'));
    stop.request_stop();
    loop.run();
    s.release();
    loop.run();
    EXPECT_EQ(order, "-b");
    s.release();
    EXPECT_EQ(s.available(), 1u);
}

TEST_F(semaphore_test, a_stop_from_before_takes_none) {
    semaphore s(1);
    stop_source stop(loop.get_executor());
    stop.request_stop();
    launch(take(s, 'a'), stop.token());
    EXPECT_EQ(order, "-");
    EXPECT_EQ(s.available(), 1u);
}

TEST_F(semaphore_test, a_permit_that_was_given_to_a_destroyed_coroutine_comes_back) {
    semaphore s(0);
    std::optional<manual_loop> ends(std::in_place);
    async_run(ends->get_executor(), take(s, 'a'));
    ends->run();
    s.release();
    ends.reset();
    EXPECT_EQ(s.available(), 1u);
}

TEST_F(semaphore_test, waits_allocate_nothing_in_a_steady_state) {
    semaphore s(0);
    auto const loop_on = [&]() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            if (i == 10) {
                before = heap_allocations();
            }
            (co_await s.acquire()).value();
        }
        EXPECT_EQ(heap_allocations() - before, 0u);
    };
    launch(loop_on());
    for (int i = 0; i < 100; ++i) {
        s.release();
        loop.run();
    }
}

TEST(semaphore_on_a_pool, never_gives_more_than_it_has_and_loses_none) {
    for (int round = 0; round < 20; ++round) {
        thread_pool pool(4);
        semaphore s(2);
        std::atomic<int> inside = 0;
        std::atomic<int> most = 0;
        auto const use = [&]() -> task<> {
            for (int i = 0; i < 20; ++i) {
                auto const taken = co_await s.acquire();
                if (!taken) {
                    co_return;
                }
                int const now = inside.fetch_add(1) + 1;
                int seen = most;
                while (now > seen && !most.compare_exchange_weak(seen, now)) {
                }
                inside.fetch_sub(1);
                s.release();
            }
        };
        auto const whole = [&]() -> task<> {
            co_await task_scope::run([&](task_scope& scope) -> task<> {
                for (int i = 0; i < 10; ++i) {
                    scope.spawn(use());
                }
                if (round % 2 == 0) {
                    scope.request_stop();
                }
                co_return;
            });
        };
        async_run(pool.get_executor(), whole());
        pool.join();
        ASSERT_LE(most, 2);
        ASSERT_EQ(s.available(), 2u);
    }
}

}  // namespace
}  // namespace plumb::test
