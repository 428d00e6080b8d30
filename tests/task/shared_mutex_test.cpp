// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/shared_mutex.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/task/when_all.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

class shared_mutex_test : public ::testing::Test {
protected:
    // Each holds it while it passes the gate.
    task<> write(gate& g, char name) {
        auto const held = co_await m.lock();
        order += held ? name : '-';
        if (held) {
            co_await g;
        }
    }
    task<> read(gate& g, char name) {
        auto const held = co_await m.lock_shared();
        order += held ? name : '-';
        if (held) {
            co_await g;
        }
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }
    void open(gate& g) {
        g.open();
        loop.run();
    }

    manual_loop loop;
    std::string order;
    shared_mutex m;
    gate one;
    gate two;
    gate three;
    gate four;
};

TEST_F(shared_mutex_test, lets_readers_in_together_and_a_writer_alone) {
    launch(read(one, 'a'));
    launch(read(two, 'b'));
    launch(write(three, 'W'));
    EXPECT_EQ(order, "ab");
    EXPECT_FALSE(m.try_lock());
    open(one);
    EXPECT_EQ(order, "ab");
    open(two);
    EXPECT_EQ(order, "abW");
    EXPECT_FALSE(m.try_lock_shared());
    open(three);
    EXPECT_TRUE(m.try_lock());
    auto const reading = m.try_lock_shared();
    EXPECT_TRUE(m.try_lock_shared());
    EXPECT_FALSE(m.try_lock());
}

TEST_F(shared_mutex_test, a_reader_does_not_pass_a_writer_that_waits) {
    launch(read(one, 'a'));
    launch(write(two, 'W'));
    launch(read(three, 'b'));
    launch(read(four, 'c'));
    EXPECT_EQ(order, "a");
    EXPECT_FALSE(m.try_lock_shared());
    open(one);
    EXPECT_EQ(order, "aW");
    open(two);
    EXPECT_EQ(order, "aWbc") << "readers that stand beside one another come in together";
    open(three);
    open(four);
}

TEST_F(shared_mutex_test, a_cancelled_writer_lets_in_who_waited_behind_it) {
    stop_source stop(loop.get_executor());
    launch(read(one, 'a'));
    launch(write(two, 'W'), stop.token());
    launch(read(three, 'b'));
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "a-b");
    open(one);
    open(three);
    EXPECT_TRUE(m.try_lock());
}

TEST_F(shared_mutex_test, a_destroyed_writer_lets_in_who_waited_behind_it) {
    launch(read(one, 'a'));
    {
        manual_loop ends;
        async_run(ends.get_executor(), write(two, 'W'));
        ends.run();
        launch(read(three, 'b'));
        EXPECT_EQ(order, "a");
    }
    loop.run();
    EXPECT_EQ(order, "ab");
    open(one);
    open(three);
}

TEST(shared_mutex_on_a_pool, excludes_writers) {
    thread_pool pool(4);
    shared_mutex m;
    int count = 0;  // the thread sanitizer sees whether it is guarded
    auto const write = [&]() -> task<> {
        for (int i = 0; i < 100; ++i) {
            auto const held = (co_await m.lock()).value();
            ++count;
        }
    };
    auto const read = [&]() -> task<> {
        int last = 0;
        for (int i = 0; i < 200; ++i) {
            auto const held = (co_await m.lock_shared()).value();
            EXPECT_GE(count, last);
            last = count;
        }
    };
    auto const all = [&]() -> task<> {
        std::vector<task<>> tasks;
        for (int i = 0; i < 4; ++i) {
            tasks.push_back(write());
            tasks.push_back(read());
        }
        co_await when_all(std::move(tasks));
    };
    async_run(pool.get_executor(), all());
    pool.join();
    EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace plumb::test
