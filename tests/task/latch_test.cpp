// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/latch.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>

namespace plumb::test {
namespace {

class latch_test : public ::testing::Test {
protected:
    task<> wait(latch& l, char name) {
        auto const waited = co_await l.wait();
        order += waited ? name : '-';
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
};

TEST_F(latch_test, lets_all_pass_at_zero_and_ever_after) {
    latch l(3);
    launch(wait(l, 'a'));
    launch(wait(l, 'b'));
    l.count_down(2);
    EXPECT_FALSE(l.try_wait());
    loop.run();
    EXPECT_EQ(order, "");
    l.count_down();
    EXPECT_TRUE(l.try_wait());
    loop.run();
    EXPECT_EQ(order, "ab");
    launch(wait(l, 'c'));
    EXPECT_EQ(order, "abc");
}

TEST_F(latch_test, of_zero_is_open) {
    latch l(0);
    EXPECT_TRUE(l.try_wait());
    launch(wait(l, 'a'));
    EXPECT_EQ(order, "a");
}

TEST_F(latch_test, a_stop_ends_a_wait_and_does_not_count) {
    latch l(1);
    stop_source stop(loop.get_executor());
    launch(wait(l, 'a'), stop.token());
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    EXPECT_FALSE(l.try_wait());
    l.count_down();
}

TEST(latch_misuse, counting_below_zero) {
    EXPECT_DEATH(
        {
            latch l(1);
            l.count_down(2);
        },
        "more often than it counts");
}

TEST(latch_on_a_pool, all_meet) {
    for (int round = 0; round < 50; ++round) {
        thread_pool pool(3);
        latch l(6);
        std::atomic<int> arrived = 0;
        std::atomic<int> passed = 0;
        auto const meet = [&]() -> task<> {
            ++arrived;
            (co_await l.arrive_and_wait()).value();
            EXPECT_EQ(arrived, 6);
            ++passed;
        };
        for (int i = 0; i < 6; ++i) {
            async_run(pool.get_executor(), meet());
        }
        pool.join();
        ASSERT_EQ(passed, 6);
    }
}

}  // namespace
}  // namespace plumb::test
