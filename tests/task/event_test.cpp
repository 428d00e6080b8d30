// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/event.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/strand.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_any.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace plumb::test {
namespace {

class event_test : public ::testing::Test {
protected:
    /// Waits, and writes down how that ended.
    task<> wait(event& e, char name) {
        auto const waited = co_await e.wait();
        order += waited ? name : '-';
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
    event manual;
    event automatic{event::reset_by::waiter};
};

TEST_F(event_test, a_manual_one_lets_all_pass_until_it_is_reset) {
    launch(wait(manual, 'a'));
    launch(wait(manual, 'b'));
    EXPECT_EQ(order, "");
    manual.set();
    EXPECT_TRUE(manual.is_set());
    EXPECT_EQ(order, "") << "who is let pass goes on through its executor";
    loop.run();
    EXPECT_EQ(order, "ab");
    launch(wait(manual, 'c'));
    EXPECT_EQ(order, "abc");
    manual.reset();
    launch(wait(manual, 'd'));
    EXPECT_EQ(order, "abc");
    manual.set();
    loop.run();
    EXPECT_EQ(order, "abcd");
}

TEST_F(event_test, an_automatic_one_lets_one_pass_for_each_set) {
    launch(wait(automatic, 'a'));
    launch(wait(automatic, 'b'));
    automatic.set();
    loop.run();
    EXPECT_EQ(order, "a");
    EXPECT_FALSE(automatic.is_set());
    automatic.set();
    automatic.set();
    loop.run();
    EXPECT_EQ(order, "ab");
    EXPECT_TRUE(automatic.is_set()) << "the next one passes";
    automatic.set();
    launch(wait(automatic, 'c'));
    launch(wait(automatic, 'd'));
    EXPECT_EQ(order, "abc") << "setting it twice is setting it once";
    automatic.set();
    loop.run();
}

TEST_F(event_test, a_stop_ends_a_wait) {
    stop_source stop(loop.get_executor());
    launch(wait(manual, 'a'), stop.token());
    launch(wait(manual, 'b'));
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    manual.set();
    loop.run();
    EXPECT_EQ(order, "-b");
}

TEST_F(event_test, a_stop_from_before_the_start_lets_nobody_pass) {
    automatic.set();
    stop_source stop(loop.get_executor());
    stop.request_stop();
    launch(wait(automatic, 'a'), stop.token());
    EXPECT_EQ(order, "-");
    EXPECT_TRUE(automatic.is_set()) << "it took nothing";
}

TEST_F(event_test, a_stop_after_the_set_comes_too_late) {
    stop_source stop(loop.get_executor());
    launch(wait(automatic, 'a'), stop.token());
    automatic.set();
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "a");
}

TEST_F(event_test, a_set_after_the_stop_goes_to_the_next) {
    stop_source stop(loop.get_executor());
    launch(wait(automatic, 'a'), stop.token());
    launch(wait(automatic, 'b'));
    auto const both = [&]() -> task<> {
        stop.request_stop();
        automatic.set();
        co_return;
    };
    launch(both());
    EXPECT_EQ(order, "-b");
}

TEST_F(event_test, a_waiter_that_is_destroyed_is_forgotten) {
    {
        manual_loop ends;
        async_run(ends.get_executor(), wait(automatic, 'a'));
        ends.run();
        launch(wait(automatic, 'b'));
    }
    automatic.set();
    loop.run();
    EXPECT_EQ(order, "b");
}

TEST_F(event_test, what_a_destroyed_waiter_was_given_goes_to_the_next) {
    std::optional<manual_loop> ends(std::in_place);
    async_run(ends->get_executor(), wait(automatic, 'a'));
    ends->run();
    automatic.set();
    ends.reset();
    EXPECT_TRUE(automatic.is_set());
    launch(wait(automatic, 'b'));
    EXPECT_EQ(order, "b");
}

TEST_F(event_test, may_be_destroyed_by_the_one_that_it_let_pass) {
    auto e = std::make_unique<event>();
    auto const waits = [&]() -> task<> {
        (co_await e->wait()).value();
        e.reset();
    };
    launch(waits());
    e->set();
    loop.run();
    EXPECT_EQ(e, nullptr);
}

TEST_F(event_test, the_loser_of_a_race_takes_nothing) {
    event other{event::reset_by::waiter};
    auto const wait_for = [](event& e) -> task<> { (co_await e.wait()).value(); };
    auto const race = [&]() -> task<> {
        auto [first, tasks] = co_await when_any(wait_for(automatic), wait_for(other));
        EXPECT_EQ(first, 1u);
        order += 'r';
    };
    launch(race());
    other.set();
    loop.run();
    EXPECT_EQ(order, "r");
    automatic.set();
    EXPECT_TRUE(automatic.is_set());
}

TEST_F(event_test, waits_allocate_nothing_in_a_steady_state) {
    auto const ping = [&]() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            if (i == 10) {
                before = heap_allocations();
            }
            (co_await automatic.wait()).value();
        }
        EXPECT_EQ(heap_allocations() - before, 0u);
    };
    launch(ping());
    for (int i = 0; i < 100; ++i) {
        automatic.set();
        loop.run();
    }
}

TEST(event_misuse, destroying_one_that_is_waited_for) {
    EXPECT_DEATH(
        {
            manual_loop loop;
            auto e = std::make_unique<event>();
            async_run(loop.get_executor(),
                      [](event& on) -> task<> { (void)co_await on.wait(); }(*e));
            loop.run();
            e.reset();
        },
        "destroyed while one of them waits");
}

// On threads.

TEST(event_on_threads, a_waiter_goes_on_in_its_own_context) {
    for (int round = 0; round < 50; ++round) {
        io_context context;
        event e;
        bool inside = false;
        std::optional<work_guard> guard(context.get_executor());
        auto const wait = [&]() -> task<> {
            (co_await e.wait()).value();
            inside = context.get_executor().running_in_this_thread();
            guard.reset();
        };
        async_run(context.get_executor(), wait());
        std::jthread const other([&] { e.set(); });
        ASSERT_TRUE(context.run());
        ASSERT_TRUE(inside);
    }
}

TEST(event_on_threads, a_waiter_goes_on_inside_its_strand) {
    thread_pool pool(3);
    strand const one(pool.get_executor());
    event e;
    int inside = 0;  // the strand guards it
    auto const wait = [&]() -> task<> {
        (co_await e.wait()).value();
        EXPECT_TRUE(one.running_in_this_thread());
        ++inside;
    };
    for (int i = 0; i < 50; ++i) {
        async_run(one, wait());
    }
    auto const set = [&]() -> task<> {
        e.set();
        co_return;
    };
    async_run(pool.get_executor(), set());
    pool.join();
    EXPECT_EQ(inside, 50);
}

TEST(event_on_threads, two_contexts_play_ping_pong) {
    constexpr int rounds = 2000;
    io_context left;
    io_context right;
    event ping{event::reset_by::waiter};
    event pong{event::reset_by::waiter};
    int played = 0;
    std::optional<work_guard> keep_left(left.get_executor());
    std::optional<work_guard> keep_right(right.get_executor());
    auto const play_left = [&]() -> task<> {
        for (int i = 0; i < rounds; ++i) {
            ping.set();
            (co_await pong.wait()).value();
            ++played;
        }
        keep_left.reset();
    };
    auto const play_right = [&]() -> task<> {
        for (int i = 0; i < rounds; ++i) {
            (co_await ping.wait()).value();
            pong.set();
        }
        keep_right.reset();
    };
    async_run(left.get_executor(), play_left());
    async_run(right.get_executor(), play_right());
    {
        std::jthread const other([&] { (void)right.run(); });
        ASSERT_TRUE(left.run());
    }
    EXPECT_EQ(played, rounds);
}

TEST(event_on_threads,
     each_set_of_an_automatic_one_lets_exactly_one_pass_however_waits_are_stopped) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(3);
        event e{event::reset_by::waiter};
        std::atomic<int> passed = 0;
        std::atomic<int> cancelled = 0;
        auto const wait = [&]() -> task<> {
            auto const waited = co_await e.wait();
            (waited ? passed : cancelled) += 1;
        };
        auto const whole = [&]() -> task<> {
            co_await task_scope::run([&](task_scope& scope) -> task<> {
                for (int i = 0; i < 6; ++i) {
                    scope.spawn(wait());
                }
                e.set();
                scope.request_stop();
                co_return;
            });
        };
        async_run(pool.get_executor(), whole());
        pool.join();
        ASSERT_EQ(passed + cancelled, 6);
        ASSERT_EQ(passed + (e.is_set() ? 1 : 0), 1);
    }
}

}  // namespace
}  // namespace plumb::test
