// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/when_all.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/strand.hpp>
#include <plumb/exec/thread_pool.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"
#include "support/stack.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

task<int> give(int value) { co_return value; }

task<> fail(char const* why) {
    throw std::runtime_error(why);
    co_return;
}

class when_all_test : public ::testing::Test {
protected:
    /// Waits until it is opened, or stopped.
    task<int> pass(gate& g, int value) {
        bool stopped = false;
        {
            auto const on_stop = [&] { stopped = true; };
            stop_callback const watch((co_await this_env()).stop, on_stop);
            co_await g;
        }
        if (stopped) {
            throw std::system_error(std::make_error_code(std::errc::operation_canceled));
        }
        co_return value;
    }

    manual_loop loop;
    gate one;
    gate two;
};

TEST_F(when_all_test, gives_every_value_in_the_order_of_the_tasks) {
    auto const all = [&]() -> task<> {
        auto [number, text, nothing] = co_await when_all(
            give(1), []() -> task<std::string> { co_return "text"; }(),
            []() -> task<> { co_return; }());
        EXPECT_EQ(number, 1);
        EXPECT_EQ(text, "text");
        EXPECT_EQ(nothing, std::monostate());
    };
    loop.run(all());
}

TEST_F(when_all_test, of_nothing_gives_nothing) {
    auto const all = []() -> task<> {
        EXPECT_EQ(co_await when_all(), std::tuple<>());
        EXPECT_TRUE((co_await when_all(std::vector<task<int>>())).empty());
        co_await when_all(std::vector<task<>>());
    };
    loop.run(all());
}

TEST_F(when_all_test, gives_references_and_what_can_only_be_moved) {
    int object = 0;
    auto const refer = [&]() -> task<int&> { co_return object; };
    auto const make = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
    auto const all = [&]() -> task<> {
        auto [reference, made] = co_await when_all(refer(), make());
        EXPECT_EQ(&reference.get(), &object);
        EXPECT_EQ(*made, 4);
    };
    loop.run(all());
}

TEST_F(when_all_test, gives_a_vector_of_the_values_of_a_vector_of_tasks) {
    auto const all = []() -> task<std::vector<int>> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 100; ++i) {
            tasks.push_back(give(i));
        }
        co_return co_await when_all(std::move(tasks));
    };
    auto const values = loop.run(all());
    ASSERT_EQ(values.size(), 100u);
    EXPECT_EQ(values[99], 99);
}

static_assert(task_range<std::array<task<int>, 2>>);
static_assert(!task_range<std::array<task<int>, 2>&>, "its owner keeps it");
static_assert(!task_range<std::array<task<int>, 2> const>, "what is const can't be given away");
static_assert(!task_range<std::span<task<int>>>, "nor what a view refers to");

TEST_F(when_all_test, takes_tasks_from_any_range) {
    EXPECT_EQ(loop.run(when_all(std::array{give(1), give(2)})), (std::vector{1, 2}));
    auto const made = std::views::iota(0, 5) | std::views::transform(give);
    EXPECT_EQ(loop.run(when_all(made)), (std::vector{0, 1, 2, 3, 4}));
}

TEST_F(when_all_test, runs_the_tasks_beside_one_another) {
    auto const all = [&]() -> task<int> {
        auto [a, b] = co_await when_all(pass(one, 1), pass(two, 2));
        co_return a * 10 + b;
    };
    int got = 0;
    async_run(loop.get_executor(), all(), {}, [&](task_result<int>& r) { got = r.take(); });
    loop.run();
    EXPECT_TRUE(one.awaited());
    EXPECT_TRUE(two.awaited());
    two.open();
    loop.run();
    EXPECT_EQ(got, 0) << "one of them has not ended";
    one.open();
    loop.run();
    EXPECT_EQ(got, 12);
}

TEST_F(when_all_test, the_first_failure_stops_the_rest_and_is_thrown_when_all_have_ended) {
    auto const all = [&]() -> task<> {
        co_await when_all(pass(one, 1), [](gate& g) -> task<> {
            co_await g;
            throw std::runtime_error("first");
        }(two));
    };
    std::string what;
    async_run(loop.get_executor(), all(), {}, [&](task_result<void>& r) {
        try {
            r.take();
        } catch (std::runtime_error const& e) {
            what = e.what();
        }
    });
    loop.run();
    two.open();
    loop.run();
    EXPECT_EQ(what, "") << "the other one is awaited";
    one.open();  // it was stopped, and says so
    loop.run();
    EXPECT_EQ(what, "first");
    EXPECT_TRUE(loop.roots().empty());
}

TEST_F(when_all_test, what_has_not_begun_when_one_fails_never_does) {
    bool began = false;
    auto const second = [&]() -> task<> {
        began = true;
        co_return;
    };
    auto const all = [&]() -> task<> { co_await when_all(fail("at once"), second()); };
    EXPECT_THROW(loop.run(all()), std::runtime_error);
    EXPECT_FALSE(began);
    auto const many = [&]() -> task<> {
        std::vector<task<>> tasks;
        tasks.push_back(fail("at once"));
        tasks.push_back(second());
        co_await when_all(std::move(tasks));
    };
    EXPECT_THROW(loop.run(many()), std::runtime_error);
    EXPECT_FALSE(began);
}

TEST_F(when_all_test, a_stop_of_the_caller_reaches_all_of_them) {
    stop_source stop(loop.get_executor());
    auto const all = [&]() -> task<> { co_await when_all(pass(one, 1), pass(two, 2)); };
    bool cancelled = false;
    async_run(loop.get_executor(), all(), stop.token(), [&](task_result<void>& r) {
        try {
            r.take();
        } catch (std::system_error const& e) {
            cancelled = e.code() == std::errc::operation_canceled;
        }
    });
    loop.run();
    stop.request_stop();
    loop.run();
    one.open();
    two.open();
    loop.run();
    EXPECT_TRUE(cancelled);
}

TEST_F(when_all_test, a_stop_from_before_the_start_is_seen_by_all_of_them) {
    stop_source stop(loop.get_executor());
    stop.request_stop();
    loop.run();
    int seen = 0;
    auto const look = [&]() -> task<> {
        seen += (co_await this_env()).stop.stop_requested() ? 1 : 0;
    };
    auto const all = [&]() -> task<> { co_await when_all(look(), look()); };
    loop.run(all(), stop.token());
    EXPECT_EQ(seen, 2);
}

TEST_F(when_all_test, a_stop_that_comes_too_late_loses_no_value) {
    stop_source stop(loop.get_executor());
    auto const last = [&]() -> task<int> {
        stop.request_stop();
        co_return 2;
    };
    auto const all = [&]() -> task<int> {
        auto [a, b] = co_await when_all(give(1), last());
        co_return a + b;
    };
    EXPECT_EQ(loop.run(all(), stop.token()), 3);
    loop.run();
}

TEST_F(when_all_test, destroyed_where_it_waits_it_destroys_all_of_them) {
    int alive = 0;
    {
        manual_loop ends;
        gate never;
        gate nor;
        auto const wait = [](gate& g, counted) -> task<> { co_await g; };
        auto const all = [&]() -> task<> {
            std::vector<task<>> more;
            more.push_back(wait(nor, counted(alive)));
            co_await when_all(wait(never, counted(alive)), when_all(std::move(more)));
        };
        async_run(ends.get_executor(), all());
        ends.run();
        EXPECT_GE(alive, 2);
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(when_all_test, never_started_runs_nothing) {
    int alive = 0;
    {
        auto const t = when_all([](counted) -> task<> { co_return; }(counted(alive)), give(1));
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(when_all_test, allocates_nothing_in_a_steady_state) {
    auto const all = []() -> task<> {
        for (int i = 0; i < 10; ++i) {
            (void)co_await when_all(give(1), give(2), give(3));
        }
        auto const before = heap_allocations();
        for (int i = 0; i < 100; ++i) {
            (void)co_await when_all(give(1), give(2), give(3));
        }
        if (pooled_memory_recycles()) {
            EXPECT_EQ(heap_allocations() - before, 0u);
        }
    };
    loop.run(all());
}

TEST_F(when_all_test, a_deep_tree_uses_constant_stack) {
    PLUMB_SKIP_WITHOUT_TAIL_CALL();
    struct tree {
        static task<> grow(int depth, std::intptr_t& deepest) {
            deepest = std::max(deepest, stack_depth());
            if (depth > 0) {
                co_await when_all(grow(depth - 1, deepest), []() -> task<> { co_return; }());
            }
        }
    };
    std::intptr_t shallow = INTPTR_MIN;
    std::intptr_t deep = INTPTR_MIN;
    loop.run(tree::grow(2, shallow));
    loop.run(tree::grow(10'000, deep));
    EXPECT_LT(deep - shallow, 4096);
}

// On threads.

task<long> fibonacci(int n) {
    if (n < 2) {
        co_return n;
    }
    auto [a, b] = co_await when_all(fibonacci(n - 1), fibonacci(n - 2));
    co_return a + b;
}

TEST(when_all_on_a_pool, runs_its_tasks_at_once) {
    thread_pool pool(2);
    std::latch both(2);
    auto const meet = [&]() -> task<> {
        both.arrive_and_wait();
        co_return;
    };
    auto const all = [&]() -> task<> { co_await when_all(meet(), meet()); };
    async_run(pool.get_executor(), all());
    pool.join();
    EXPECT_TRUE(both.try_wait());
}

TEST(when_all_on_a_pool, forks_and_joins_a_tree_of_tasks) {
    thread_pool pool(4);
    long got = 0;
    async_run(pool.get_executor(), fibonacci(14), {},
              [&](task_result<long>& r) { got = r.take(); });
    pool.join();
    EXPECT_EQ(got, 377);
}

TEST(when_all_on_a_pool, failures_that_race_give_one_exception_and_end_all) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(3);
        std::atomic<int> alive = 0;
        bool thrown = false;
        auto const one_of = [&](int i) -> task<> {
            ++alive;
            auto const on_stop = [] {};
            stop_callback const watch((co_await this_env()).stop, on_stop);
            --alive;
            if (i % 2 == 0) {
                throw std::runtime_error("one of them");
            }
        };
        auto const all = [&]() -> task<> {
            std::vector<task<>> tasks;
            for (int i = 0; i < 8; ++i) {
                tasks.push_back(one_of(i));
            }
            co_await when_all(std::move(tasks));
        };
        async_run(pool.get_executor(), all(), {}, [&](task_result<void>& r) {
            EXPECT_EQ(alive, 0);
            thrown = r.failed();
        });
        pool.join();
        ASSERT_TRUE(thrown);
    }
}

TEST(when_all_on_a_pool, a_stop_from_outside_races_its_end) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(3);
        stop_source stop(pool.get_executor());
        bool ended = false;
        async_run(pool.get_executor(), fibonacci(5), stop.token(),
                  [&](task_result<long>& r) { ended = r.has_value(); });
        stop.request_stop();
        pool.join();
        ASSERT_TRUE(ended);
    }
}

TEST(when_all_on_a_strand, runs_one_at_a_time) {
    thread_pool pool(3);
    std::atomic<int> inside = 0;
    int ran = 0;
    auto const work_on = [&]() -> task<> {
        EXPECT_EQ(inside.fetch_add(1), 0);
        ++ran;
        EXPECT_EQ(inside.fetch_sub(1), 1);
        co_return;
    };
    auto const all = [&]() -> task<> {
        std::vector<task<>> tasks;
        for (int i = 0; i < 100; ++i) {
            tasks.push_back(work_on());
        }
        co_await when_all(std::move(tasks));
    };
    async_run(strand(pool.get_executor()), all());
    pool.join();
    EXPECT_EQ(ran, 100);
}

}  // namespace
}  // namespace plumb::test
