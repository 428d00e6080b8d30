// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/condition.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <system_error>
#include <utility>

namespace plumb::test {
namespace {

class condition_test : public ::testing::Test {
protected:
    /// Waits until the state is reached.
    task<> await_state(int wanted, char name) {
        auto held = (co_await m.lock()).value();
        while (state < wanted) {
            auto const waited = co_await changed.wait(held);
            EXPECT_TRUE(held);
            if (!waited) {
                EXPECT_EQ(waited.error(), std::errc::operation_canceled);
                order += '-';
                co_return;
            }
        }
        order += name;
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
    mutex m;
    condition changed;
    int state = 0;
};

TEST_F(condition_test, unlocks_while_it_waits_and_locks_again) {
    launch(await_state(1, 'a'));
    {
        auto const held = m.try_lock();
        ASSERT_TRUE(held);
        state = 1;
        changed.notify_one();
        loop.run();
        EXPECT_EQ(order, "") << "the mutex is held by another";
    }
    loop.run();
    EXPECT_EQ(order, "a");
}

TEST_F(condition_test, notifies_one_or_all_in_the_order_of_coming) {
    for (char const name : {'a', 'b', 'c'}) {
        launch(await_state(1, name));
    }
    state = 1;
    changed.notify_one();
    loop.run();
    EXPECT_EQ(order, "a");
    changed.notify_all();
    loop.run();
    EXPECT_EQ(order, "abc");
    changed.notify_all();
}

TEST_F(condition_test, a_stop_ends_a_wait_with_the_mutex_held) {
    stop_source stop(loop.get_executor());
    launch(await_state(1, 'a'), stop.token());
    launch(await_state(1, 'b'));
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    state = 1;
    changed.notify_one();
    loop.run();
    EXPECT_EQ(order, "-b");
    EXPECT_TRUE(m.try_lock());
}

TEST_F(condition_test, a_stop_during_a_wait_that_was_notified_comes_too_late) {
    stop_source stop(loop.get_executor());
    launch(await_state(1, 'a'), stop.token());
    state = 1;
    changed.notify_one();
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "a");
}

TEST(condition_misuse, waiting_without_the_mutex) {
    EXPECT_DEATH(
        {
            manual_loop loop;
            condition c;
            auto const wait = [&]() -> task<> {
                mutex::held none;
                (void)co_await c.wait(none);
            };
            loop.run(wait());
        },
        "without its mutex");
}

TEST(condition_on_a_pool, passes_every_item_on) {
    thread_pool pool(3);
    mutex m;
    condition changed;
    std::deque<int> items;
    int sum = 0;
    constexpr int count = 500;
    auto const produce = [&]() -> task<> {
        for (int i = 1; i <= count; ++i) {
            auto const held = (co_await m.lock()).value();
            items.push_back(i);
            changed.notify_one();
        }
    };
    auto const consume = [&]() -> task<> {
        for (int i = 0; i < count; ++i) {
            auto held = (co_await m.lock()).value();
            while (items.empty()) {
                (co_await changed.wait(held)).value();
            }
            sum += items.front();
            items.pop_front();
        }
    };
    for (int i = 0; i < 2; ++i) {
        async_run(pool.get_executor(), produce());
        async_run(pool.get_executor(), consume());
    }
    pool.join();
    EXPECT_EQ(sum, count * (count + 1));
}

}  // namespace
}  // namespace plumb::test
