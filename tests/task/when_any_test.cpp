// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/when_any.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/task/cancellation.hpp>

#include "support/allocations.hpp"
#include "support/context.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

task<int> give(int value) { co_return value; }

class when_any_test : public ::testing::Test {
protected:
    manual_loop loop;
};

TEST_F(when_any_test, tells_which_ended_first) {
    gate one;
    gate two;
    auto const pass = [](gate& g, int value) -> task<int> {
        co_await g;
        co_return value;
    };
    std::size_t index = 9;
    int value = 0;
    auto const any = [&]() -> task<> {
        auto [first, tasks] = co_await when_any(pass(one, 1), pass(two, 2));
        index = first;
        value = std::get<1>(tasks).take();
        EXPECT_EQ(std::get<0>(tasks).take(), 1) << "the other one is awaited, and keeps its value";
    };
    async_run(loop.get_executor(), any());
    loop.run();
    two.open();
    loop.run();
    EXPECT_EQ(index, 9u);
    one.open();
    loop.run();
    EXPECT_EQ(index, 1u);
    EXPECT_EQ(value, 2);
}

TEST_F(when_any_test, what_has_not_begun_when_it_is_decided_never_does) {
    auto const never = []() -> task<int> {
        ADD_FAILURE();
        co_return 0;
    };
    auto const any = [&]() -> task<> {
        auto [first, tasks] = co_await when_any(give(7), never());
        EXPECT_EQ(first, 0u);
        EXPECT_EQ(std::get<0>(tasks).take(), 7);
        EXPECT_FALSE(std::get<1>(tasks).result().has_value());
        EXPECT_FALSE(std::get<1>(tasks).result().failed());
    };
    loop.run(any());
}

TEST_F(when_any_test, an_exception_may_be_first) {
    auto const fail = []() -> task<> {
        throw std::runtime_error("first");
        co_return;
    };
    auto const any = [&]() -> task<> {
        auto [first, tasks] = co_await when_any(fail(), give(1));
        EXPECT_EQ(first, 0u);
        EXPECT_THROW(std::get<0>(tasks).take(), std::runtime_error);
    };
    loop.run(any());
}

TEST_F(when_any_test, takes_a_vector_of_tasks) {
    auto const any = [&]() -> task<> {
        std::vector<task<int>> tasks;
        tasks.push_back(give(3));
        tasks.push_back(give(4));
        auto [first, ended] = co_await when_any(std::move(tasks));
        EXPECT_EQ(first, 0u);
        EXPECT_EQ(ended[first].take(), 3);
        auto none = co_await when_any(std::vector<task<int>>());
        EXPECT_EQ(none.index, 0u);
    };
    loop.run(any());
}

TEST_F(when_any_test, takes_tasks_from_any_range) {
    auto const any = [&]() -> task<> {
        auto [first, ended] =
            co_await when_any(std::views::iota(7, 9) | std::views::transform(give));
        EXPECT_EQ(ended.size(), 2u);
        EXPECT_EQ(ended[first].take(), 7);
    };
    loop.run(any());
}

TEST_F(when_any_test, destroyed_where_it_waits_it_destroys_all_of_them) {
    int alive = 0;
    {
        manual_loop ends;
        gate never;
        gate nor;
        auto const wait = [](gate& g, counted) -> task<> { co_await g; };
        auto const any = [&]() -> task<> {
            (void)co_await when_any(wait(never, counted(alive)), wait(nor, counted(alive)));
        };
        async_run(ends.get_executor(), any());
        ends.run();
        EXPECT_GE(alive, 2);
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(when_any_test, allocates_nothing_in_a_steady_state) {
    auto const any = []() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            if (i == 10) {
                before = heap_allocations();
            }
            auto first = co_await when_any(give(1), give(2));
            EXPECT_EQ(first.index, 0u);
        }
        if (pooled_memory_recycles()) {
            EXPECT_EQ(heap_allocations() - before, 0u);
        }
    };
    loop.run(any());
}

/// With operations that can be stopped.
class when_any_io_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, when_any_io_test, every_backend(), name_of_backend);

task<int> after(std::chrono::nanoseconds d, int value) {
    (co_await co_wait(d)).value();
    co_return value;
}

TEST_P(when_any_io_test, stops_the_losers_and_awaits_them) {
    auto const any = []() -> task<> {
        auto [first, tasks] = co_await when_any(after(1h, 1), after(1ms, 2), after(2h, 3));
        EXPECT_EQ(first, 1u);
        EXPECT_EQ(std::get<1>(tasks).take(), 2);
        EXPECT_TRUE(is_cancellation(std::get<0>(tasks).result().exception()));
        EXPECT_TRUE(is_cancellation(std::get<2>(tasks).result().exception()));
    };
    auto const begin = now();
    run(any());
    EXPECT_LT(now() - begin, 1min);
}

TEST_P(when_any_io_test, a_stop_of_the_caller_ends_all_of_them) {
    stop_source stop(executor());
    auto const any = []() -> task<bool> {
        auto [first, tasks] = co_await when_any(after(1h, 1), after(2h, 2));
        co_return is_cancellation(std::get<0>(tasks).result().exception()) &&
            is_cancellation(std::get<1>(tasks).result().exception());
    };
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    EXPECT_TRUE(run(any(), stop.token()));
}

TEST(when_any_on_a_pool, exactly_one_is_first_and_no_value_is_lost) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(3);
        int sum = -1;
        auto const any = [&]() -> task<> {
            std::vector<task<int>> tasks;
            for (int i = 0; i < 6; ++i) {
                tasks.push_back(give(i));
            }
            auto [first, ended] = co_await when_any(std::move(tasks));
            EXPECT_LT(first, ended.size());
            EXPECT_TRUE(ended[first].result().has_value());
            sum = 0;
            for (auto& t : ended) {
                sum += t.result().has_value() ? 1 : 0;
            }
        };
        async_run(pool.get_executor(), any());
        pool.join();
        ASSERT_GE(sum, 1);
    }
}

}  // namespace
}  // namespace plumb::test
