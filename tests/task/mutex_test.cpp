// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/mutex.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/stopped_by.hpp>
#include <plumb/task/when_all.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

class mutex_test : public ::testing::Test {
protected:
    /// Holds it while it passes the gate.
    task<> hold(gate& g, char name) {
        auto const held = co_await m.lock();
        if (!held) {
            order += '-';
            co_return;
        }
        order += name;
        co_await g;
        order += name;
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
    gate one;
    gate two;
    mutex m;
};

TEST_F(mutex_test, is_held_by_one_at_a_time_across_suspensions) {
    launch(hold(one, 'a'));
    launch(hold(two, 'b'));
    EXPECT_EQ(order, "a");
    EXPECT_FALSE(m.try_lock());
    one.open();
    loop.run();
    EXPECT_EQ(order, "aab");
    two.open();
    loop.run();
    EXPECT_EQ(order, "aabb");
    EXPECT_TRUE(m.try_lock());
}

TEST_F(mutex_test, may_be_unlocked_early_and_moved) {
    auto held = m.try_lock();
    ASSERT_TRUE(held);
    auto moved = std::move(held);
    EXPECT_FALSE(held);
    EXPECT_TRUE(moved);
    moved.unlock();
    moved.unlock();
    EXPECT_FALSE(moved);
    EXPECT_TRUE(m.try_lock());
}

TEST_F(mutex_test, a_cancelled_wait_does_not_hold_it) {
    stop_source stop(loop.get_executor());
    launch(hold(one, 'a'));
    launch(hold(two, 'b'), stop.token());
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "a-");
    one.open();
    loop.run();
    EXPECT_TRUE(m.try_lock());
}

TEST_F(mutex_test, an_exception_unlocks_it) {
    auto const fail = [&]() -> task<> {
        auto const held = (co_await m.lock()).value();
        throw std::system_error(std::make_error_code(std::errc::io_error));
    };
    EXPECT_THROW(loop.run(fail()), std::system_error);
    EXPECT_TRUE(m.try_lock());
}

/// Destroys, with their context, two siblings of which one holds what the other waits for. In either order, since
/// nothing says which is destroyed first.
template <class Context>
void destroys_who_holds_and_who_waits(auto const& run) {
    for (bool const holder_first : {true, false}) {
        mutex m;
        gate never;
        auto const hold = [&]() -> task<> {
            auto held = co_await m.lock();
            co_await never;
        };
        auto const wait = [&]() -> task<> {
            co_await next_turn();  // until the other has it
            co_await next_turn();
            auto held = co_await m.lock();
            co_await never;
        };
        {
            Context context;
            async_run(context.get_executor(),
                      holder_first ? when_all(hold(), wait()) : when_all(wait(), hold()));
            run(context);
        }
        EXPECT_TRUE(m.try_lock()) << "nobody has it";
    }
}

TEST_F(mutex_test, a_context_that_ends_destroys_who_holds_it_and_who_waits_for_it) {
    destroys_who_holds_and_who_waits<manual_loop>([](manual_loop& c) { c.run(); });
    destroys_who_holds_and_who_waits<io_context>([](io_context& c) { ASSERT_TRUE(c.run()); });
    destroys_who_holds_and_who_waits<thread_pool>([](thread_pool& c) { c.join(); });
}

TEST(mutex_on_a_pool, excludes) {
    thread_pool pool(4);
    mutex m;
    int count = 0;  // the thread sanitizer sees whether it is guarded
    auto const add = [&]() -> task<> {
        for (int i = 0; i < 300; ++i) {
            auto const held = (co_await m.lock()).value();
            ++count;
        }
    };
    auto const all = [&]() -> task<> {
        std::vector<task<>> tasks;
        for (int i = 0; i < 8; ++i) {
            tasks.push_back(add());
        }
        co_await when_all(std::move(tasks));
    };
    async_run(pool.get_executor(), all());
    pool.join();
    EXPECT_EQ(count, 2400);
}

}  // namespace
}  // namespace plumb::test
