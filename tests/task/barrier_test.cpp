// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/barrier.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>

namespace plumb::test {
namespace {

class barrier_test : public ::testing::Test {
protected:
    task<> meet(barrier& b, char name) {
        auto const met = co_await b.arrive_and_wait();
        order += met ? name : '-';
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
};

TEST_F(barrier_test, lets_all_go_on_when_the_last_has_arrived_again_and_again) {
    barrier b(2);
    launch(meet(b, 'a'));
    EXPECT_EQ(order, "");
    launch(meet(b, 'b'));
    EXPECT_EQ(order, "ba") << "the last one doesn't suspend";
    launch(meet(b, 'c'));
    EXPECT_EQ(order, "ba");
    launch(meet(b, 'd'));
    EXPECT_EQ(order, "badc");
}

TEST_F(barrier_test, a_cancelled_wait_takes_its_arrival_back) {
    barrier b(2);
    stop_source stop(loop.get_executor());
    launch(meet(b, 'a'), stop.token());
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    launch(meet(b, 'b'));
    EXPECT_EQ(order, "-");
    launch(meet(b, 'c'));
    EXPECT_EQ(order, "-cb");
}

TEST(barrier_on_a_pool, nobody_is_a_round_ahead) {
    thread_pool pool(3);
    barrier b(4);
    std::atomic<int> arrived = 0;
    auto const go_round = [&]() -> task<> {
        for (int round = 1; round <= 100; ++round) {
            ++arrived;
            (co_await b.arrive_and_wait()).value();
            EXPECT_GE(arrived, 4 * round);
            EXPECT_LE(arrived, 4 * round + 4);
        }
    };
    for (int i = 0; i < 4; ++i) {
        async_run(pool.get_executor(), go_round());
    }
    pool.join();
    EXPECT_EQ(arrived, 400);
}

}  // namespace
}  // namespace plumb::test
