// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task.hpp>

#include "support/manual_loop.hpp"
#include "support/stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

static_assert(std::is_nothrow_move_constructible_v<task<int>>);
static_assert(!std::is_copy_constructible_v<task<int>> && !std::is_copy_assignable_v<task<int>>);
static_assert(sizeof(task<std::string>) == sizeof(void*));
static_assert(affine_awaitable<task<int>>);

class task_test : public ::testing::Test {
protected:
    manual_loop loop;
};

task<int> give(int value) { co_return value; }

TEST_F(task_test, gives_its_value) { EXPECT_EQ(loop.run(give(42)), 42); }

TEST_F(task_test, gives_what_is_convertible_to_its_type) {
    EXPECT_EQ(loop.run([]() -> task<std::string> { co_return "text"; }()), "text");
}

TEST_F(task_test, moves_a_value_that_can_only_be_moved) {
    auto const inner = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    auto const outer = [&]() -> task<std::unique_ptr<int>> { co_return co_await inner(); };
    EXPECT_EQ(*loop.run(outer()), 7);
}

TEST_F(task_test, gives_a_reference_to_the_very_object) {
    int object = 1;
    auto const refer = [](int& o) -> task<int&> { co_return o; };
    auto const through = [&]() -> task<int&> { co_return co_await refer(object); };
    EXPECT_EQ(&loop.run(through()), &object);
    auto const refer_const = [](int& o) -> task<int const&> { co_return o; };
    EXPECT_EQ(&loop.run(refer_const(object)), &object);
}

TEST_F(task_test, gives_a_reference_to_the_base_of_an_object) {
    struct base {
        int b = 1;
    };
    struct other {
        int o = 2;
    };
    struct derived : other, base {};
    derived object;
    auto const refer = [](derived& o) -> task<base&> { co_return o; };
    EXPECT_EQ(&loop.run(refer(object)), static_cast<base*>(&object));
}

TEST_F(task_test, runs_to_its_end_without_a_value) {
    bool ran = false;
    auto const run = [&]() -> task<> {
        ran = true;
        co_return;
    };
    loop.run(run());
    EXPECT_TRUE(ran);
}

TEST_F(task_test, throws_in_its_awaiter_what_it_threw) {
    auto const fail = []() -> task<int> {
        throw std::runtime_error("because");
        co_return 1;
    };
    auto const handle = [&]() -> task<std::string> {
        try {
            (void)co_await fail();
        } catch (std::runtime_error const& e) {
            co_return e.what();
        }
        co_return "nothing";
    };
    EXPECT_EQ(loop.run(handle()), "because");
    EXPECT_THROW(loop.run(fail()), std::runtime_error);
}

TEST_F(task_test, throws_without_a_value_and_with_a_reference_too) {
    auto const fail = []() -> task<> {
        throw std::runtime_error("because");
        co_return;
    };
    EXPECT_THROW(loop.run(fail()), std::runtime_error);
    auto const refer = [](int& o) -> task<int&> {
        throw std::runtime_error("because");
        co_return o;
    };
    int object = 0;
    EXPECT_THROW(loop.run(refer(object)), std::runtime_error);
}

TEST_F(task_test, an_exception_passes_through_many_tasks_unchanged) {
    struct through {
        static task<> pass(int levels) {
            if (levels == 0) {
                throw std::runtime_error("from the bottom");
            }
            co_await pass(levels - 1);
        }
    };
    EXPECT_THROW(loop.run(through::pass(100)), std::runtime_error);
}

TEST_F(task_test, throws_where_its_value_cannot_be_made) {
    struct stubborn {
        stubborn() = default;
        stubborn(stubborn const&) { throw std::runtime_error("not copied"); }
    };
    auto const copy = []() -> task<stubborn> {
        stubborn const original;
        co_return original;
    };
    EXPECT_THROW(loop.run(copy()), std::runtime_error);
}

struct throws_at_its_end {
    ~throws_at_its_end() noexcept(false) { throw std::runtime_error("at its end"); }
};

TEST_F(task_test, an_exception_after_the_value_takes_its_place) {
    int alive = 0;
    auto const fail = [&]() -> task<counted> {
        throws_at_its_end const last;
        co_return counted(alive);
    };
    EXPECT_THROW(loop.run(fail()), std::runtime_error);
    EXPECT_EQ(alive, 0);
}

TEST_F(task_test, destroys_a_value_that_nobody_took) {
    int alive = 0;
    auto const make = [&]() -> task<counted> { co_return counted(alive); };
    auto const ignore = [&]() -> task<int> {
        auto t = make();
        co_await t.finished();
        co_return alive;
    };
    EXPECT_EQ(loop.run(ignore()), 1);
    EXPECT_EQ(alive, 0);
}

TEST_F(task_test, is_lazy) {
    bool ran = false;
    auto const run = [&]() -> task<> {
        ran = true;
        co_return;
    };
    auto const later = [&]() -> task<> {
        auto t = run();
        EXPECT_FALSE(ran);
        co_await std::move(t);
        EXPECT_TRUE(ran);
    };
    loop.run(later());
    EXPECT_TRUE(ran);
}

TEST_F(task_test, runs_nothing_when_it_is_destroyed_before_its_start) {
    bool ran = false;
    int alive = 0;
    {
        auto const run = [&](counted) -> task<> {
            ran = true;
            co_return;
        };
        auto const t = run(counted(alive));
        EXPECT_EQ(alive, 1);
    }
    EXPECT_FALSE(ran);
    EXPECT_EQ(alive, 0);
}

TEST_F(task_test, can_be_moved_before_it_is_awaited) {
    auto const later = []() -> task<int> {
        std::vector<task<int>> tasks;
        for (int i = 0; i < 100; ++i) {
            tasks.push_back(give(i));
        }
        tasks[3] = give(1000);
        int sum = 0;
        for (auto& t : tasks) {
            sum += co_await std::move(t);
        }
        co_return sum;
    };
    EXPECT_EQ(loop.run(later()), 4950 - 3 + 1000);
}

TEST_F(task_test, destroys_its_locals_before_its_awaiter_goes_on) {
    int alive = 0;
    auto const inner = [&]() -> task<> {
        counted const c(alive);
        EXPECT_EQ(alive, 1);
        co_return;
    };
    auto const outer = [&]() -> task<> {
        co_await inner();
        EXPECT_EQ(alive, 0);
    };
    loop.run(outer());
}

TEST_F(task_test, destroys_what_it_owns_where_it_is_suspended) {
    int alive = 0;
    gate closed;
    auto const inner = [&](counted) -> task<> {
        counted const local(alive);
        co_await closed;
        ADD_FAILURE() << "resumed";
    };
    auto const outer = [&]() -> task<> {
        counted const local(alive);
        co_await inner(counted(alive));
    };
    async_run(loop.get_executor(), outer());
    loop.run();
    EXPECT_TRUE(closed.awaited());
    EXPECT_EQ(alive, 4);
    loop.roots().destroy_all();
    EXPECT_EQ(alive, 0);
}

TEST_F(task_test, resumes_its_awaiter_once_it_was_resumed_itself) {
    gate closed;
    auto const inner = [&]() -> task<int> {
        co_await closed;
        co_return 5;
    };
    int got = 0;
    auto const outer = [&]() -> task<> { got = co_await inner(); };
    async_run(loop.get_executor(), outer());
    loop.run();
    EXPECT_EQ(got, 0);
    ASSERT_TRUE(closed.open());
    EXPECT_EQ(got, 5);
    EXPECT_TRUE(loop.roots().empty());
}

TEST_F(task_test, finished_leaves_the_result_to_be_taken) {
    auto const fail = []() -> task<int> {
        throw std::runtime_error("because");
        co_return 1;
    };
    auto const look = [&]() -> task<> {
        auto good = give(3);
        co_await good.finished();
        EXPECT_TRUE(good.result().has_value());
        EXPECT_EQ(good.result().exception(), nullptr);
        EXPECT_EQ(good.take(), 3);

        auto bad = fail();
        co_await bad.finished();
        EXPECT_FALSE(bad.result().has_value());
        EXPECT_NE(bad.result().exception(), nullptr);
        EXPECT_THROW((void)bad.take(), std::runtime_error);
    };
    loop.run(look());
}

task<int> deepest(std::intptr_t& stack) {
    stack = stack_depth();
    co_return 1;
}

TEST_F(task_test, a_million_awaits_in_a_row_use_constant_stack) {
    PLUMB_SKIP_WITHOUT_TAIL_CALL();
    auto const sum = []() -> task<std::int64_t> {
        std::int64_t all = 0;
        std::intptr_t first = 0;
        std::intptr_t last = 0;
        all += co_await deepest(first);
        for (int i = 1; i < 1'000'000; ++i) {
            all += co_await deepest(last);
        }
        EXPECT_EQ(first, last);
        co_return all;
    };
    EXPECT_EQ(loop.run(sum()), 1'000'000);
}

/// Awaits ten of the next lower level, one after another; each of the lowest looks how deep the stack is.
task<int> tens(int levels, std::intptr_t& least, std::intptr_t& most) {
    if (levels == 0) {
        least = std::min(least, stack_depth());
        most = std::max(most, stack_depth());
        co_return 1;
    }
    int all = 0;
    for (int i = 0; i < 10; ++i) {
        all += co_await tens(levels - 1, least, most);
    }
    co_return all;
}

TEST_F(task_test, ten_million_awaits_in_seven_levels_use_constant_stack) {
    PLUMB_SKIP_WITHOUT_TAIL_CALL();
    auto least = std::numeric_limits<std::intptr_t>::max();
    auto most = std::numeric_limits<std::intptr_t>::min();
    EXPECT_EQ(loop.run(tens(7, least, most)), 10'000'000);
    EXPECT_EQ(least, most);
}

task<int> nested(int levels, gate* at_the_bottom, std::intptr_t& stack) {
    if (levels != 0) {
        co_return 1 + co_await nested(levels - 1, at_the_bottom, stack);
    }
    stack = stack_depth();
    if (at_the_bottom != nullptr) {
        co_await *at_the_bottom;
    }
    co_return 0;
}

TEST_F(task_test, a_chain_of_a_hundred_thousand_tasks_uses_constant_stack) {
    PLUMB_SKIP_WITHOUT_TAIL_CALL();
    std::intptr_t shallow = 0;
    std::intptr_t deep = 0;
    EXPECT_EQ(loop.run(nested(0, nullptr, shallow)), 0);
    EXPECT_EQ(loop.run(nested(100'000, nullptr, deep)), 100'000);
    EXPECT_EQ(deep, shallow);
}

TEST_F(task_test, a_chain_of_a_hundred_thousand_tasks_ends_after_it_was_suspended) {
    PLUMB_SKIP_WITHOUT_TAIL_CALL();
    gate closed;
    std::intptr_t stack = 0;
    int got = 0;
    auto const run = [&]() -> task<> { got = co_await nested(100'000, &closed, stack); };
    async_run(loop.get_executor(), run());
    loop.run();
    ASSERT_TRUE(closed.open());
    EXPECT_EQ(got, 100'000);
}

}  // namespace
}  // namespace plumb::test
