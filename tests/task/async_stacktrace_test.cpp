// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/async_stacktrace.hpp>

#include <plumb/exec/pooled_memory.hpp>
#include <plumb/task/async_generator.hpp>
#include <plumb/task/dump_callstack.hpp>
#include <plumb/task/run_on.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_all.hpp>
#include <plumb/task/with_stop.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using line = std::uint_least32_t;

constexpr line here(std::source_location where = std::source_location::current()) {
    return where.line();
}

class async_stacktrace_test : public ::testing::Test {
protected:
    manual_loop loop;
};

line taken_at = 0;
line passed_at = 0;
line begun_at = 0;

task<async_stacktrace> innermost() {
    taken_at = here() + 1;
    co_return co_await async_stacktrace::current();
}

task<async_stacktrace> nested(int levels) {
    if (levels == 0) {
        begun_at = here() + 1;
        co_return co_await innermost();
    }
    passed_at = here() + 1;
    co_return co_await nested(levels - 1);
}

void expect_frame(async_stacktrace const& stack, std::size_t i, std::string_view function,
                  line where) {
    ASSERT_LT(i, stack.size());
    EXPECT_NE(function_of(stack[i]).find(function), std::string_view::npos)
        << function_of(stack[i]);
    EXPECT_EQ(stack[i].line(), where) << i;
    EXPECT_TRUE(std::string_view(stack[i].file_name()).ends_with("async_stacktrace_test.cpp"));
}

TEST_F(async_stacktrace_test, has_each_coroutine_innermost_first_with_the_line_of_its_await) {
    auto const stack = loop.run(nested(2));
    ASSERT_EQ(stack.size(), 4u) << stack.to_string();
    expect_frame(stack, 0, "innermost()", taken_at);
    expect_frame(stack, 1, "nested(int)", begun_at);
    expect_frame(stack, 2, "nested(int)", passed_at);
    expect_frame(stack, 3, "nested(int)", passed_at);
    EXPECT_FALSE(stack.truncated());
}

TEST_F(async_stacktrace_test, names_functions_as_they_are_written) {
    auto const stack = loop.run(nested(0));
    std::string_view const name = function_of(stack[1]);
    EXPECT_TRUE(name.ends_with("nested(int)")) << name;
    EXPECT_EQ(name.find("Frame"), std::string_view::npos) << name;
}

TEST_F(async_stacktrace_test, prints_a_line_for_each_frame) {
    auto const stack = loop.run(nested(0));
    std::string const text = stack.to_string();
    EXPECT_TRUE(text.starts_with("[0] ")) << text;
    EXPECT_NE(text.find("innermost() at "), std::string::npos) << text;
    EXPECT_NE(text.find("async_stacktrace_test.cpp:" + std::to_string(taken_at) + "\n[1] "),
              std::string::npos)
        << text;
}

TEST_F(async_stacktrace_test, of_a_deep_stack_keeps_the_innermost) {
    auto const stack = loop.run(nested(1000));
    EXPECT_EQ(stack.size(), async_stacktrace::most);
    EXPECT_TRUE(stack.truncated());
    expect_frame(stack, 0, "innermost()", taken_at);
}

TEST_F(async_stacktrace_test, is_a_value) {
    async_stacktrace none;
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(none.to_string(), "");
    auto stack = loop.run(nested(0));
    async_stacktrace const copy = stack;
    none = std::move(stack);
    stack = async_stacktrace();
    EXPECT_EQ(none.size(), 2u);
    EXPECT_EQ(copy.begin(), none.begin());
}

TEST_F(async_stacktrace_test, reaches_through_combinators_scopes_generators_and_other_stops) {
    line joined_at = 0;
    auto const all = [&]() -> task<async_stacktrace> {
        joined_at = here() + 1;
        auto [a, b] = co_await when_all(innermost(), innermost());
        co_return a;
    };
    auto stack = loop.run(all());
    ASSERT_EQ(stack.size(), 3u) << stack.to_string();  // with that of `when_all`
    expect_frame(stack, 2, "TestBody", joined_at);

    line spawned_at = 0;
    async_stacktrace spawned;
    auto const child = [&]() -> task<> { spawned = co_await innermost(); };
    auto const body = [&](task_scope& scope) -> task<> {
        scope.spawn(child());
        co_return;
    };
    auto const scoped = [&]() -> task<> {
        spawned_at = here() + 1;
        co_await task_scope::run(body);
    };
    loop.run(scoped());
    ASSERT_EQ(spawned.size(), 3u) << spawned.to_string();
    expect_frame(spawned, 2, "TestBody", spawned_at);

    line next_at = 0;
    auto const values = []() -> async_generator<async_stacktrace> {
        co_yield co_await innermost();
        co_yield co_await innermost();
    };
    auto const consumer = [&]() -> task<async_stacktrace> {
        auto each = values();
        async_stacktrace last;
        next_at = here() + 1;
        while (auto* const value = co_await each.next()) {
            last = *value;
        }
        co_return last;
    };
    stack = loop.run(consumer());
    ASSERT_EQ(stack.size(), 3u) << stack.to_string();
    expect_frame(stack, 2, "TestBody", next_at);

    auto const shielded = [&]() -> task<async_stacktrace> {
        co_return co_await with_stop(stop_token(), innermost());
    };
    EXPECT_EQ(loop.run(shielded()).size(), 2u);
}

TEST_F(async_stacktrace_test, reaches_home_from_another_executor) {
    manual_loop other;
    async_stacktrace stack;
    auto const trip = [&]() -> task<> {
        stack = co_await run_on(other.get_executor(), innermost());
    };
    async_run(loop.get_executor(), trip());
    loop.run();
    other.run();
    loop.run();
    ASSERT_EQ(stack.size(), 3u) << stack.to_string();  // with that of `run_on`
    expect_frame(stack, 0, "innermost()", taken_at);
}

TEST_F(async_stacktrace_test, dump_callstack_prints_it) {
    std::FILE* const to = std::tmpfile();
    ASSERT_NE(to, nullptr);
    line dumped_at = 0;
    auto const dumps = [&]() -> task<> {
        dumped_at = here() + 1;
        co_await dump_callstack(to);
    };
    auto const outer = [&]() -> task<> { co_await dumps(); };
    loop.run(outer());
    std::rewind(to);
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), to));
    std::fclose(to);
    EXPECT_TRUE(text.starts_with("[0] ")) << text;
    EXPECT_NE(text.find(".cpp:" + std::to_string(dumped_at) + "\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\n[1] "), std::string::npos) << text;
}

// Exceptions.

line thrown_behind = 0;
line failed_through = 0;

task<> throws() {
    thrown_behind = here() + 1;
    (void)co_await this_env();
    throw std::runtime_error("because");
}

task<> passes_on() {
    failed_through = here() + 1;
    co_await throws();
}

task<> throws_at_once() {
    throw std::runtime_error("at once");
    co_return;
}

TEST_F(async_stacktrace_test, an_exception_that_leaves_tasks_carries_that_of_the_innermost) {
    async_stacktrace stack;
    auto const catches = [&]() -> task<> {
        try {
            co_await passes_on();
        } catch (std::runtime_error const&) {
            stack = async_stacktrace::of(std::current_exception());
        }
    };
    loop.run(catches());
    ASSERT_EQ(stack.size(), 3u) << stack.to_string();
    expect_frame(stack, 0, "throws()", thrown_behind);
    expect_frame(stack, 1, "passes_on()", failed_through);
}

TEST_F(async_stacktrace_test, of_an_exception_is_known_where_the_root_ends_and_outside) {
    async_stacktrace at_end;
    async_run(loop.get_executor(), passes_on(), {}, [&](task_result<void>& r) {
        at_end = r.failure().stack();
        EXPECT_EQ(async_stacktrace::of(r.exception()).begin(), at_end.begin());
    });
    loop.run();
    EXPECT_EQ(at_end.size(), 2u) << at_end.to_string();
    try {
        loop.run(passes_on());
        ADD_FAILURE();
    } catch (std::runtime_error const&) {
        EXPECT_EQ(async_stacktrace::of(std::current_exception()).size(), 2u);
    }
}

TEST_F(async_stacktrace_test, a_coroutine_that_has_not_awaited_is_where_it_begins) {
    async_run(loop.get_executor(), throws_at_once(), {}, [&](task_result<void>& r) {
        auto const stack = r.failure().stack();
        ASSERT_EQ(stack.size(), 1u);
        EXPECT_NE(function_of(stack[0]).find("throws_at_once()"), std::string_view::npos)
            << function_of(stack[0]);
        EXPECT_NE(stack[0].line(), 0u);
    });
    loop.run();
}

TEST_F(async_stacktrace_test, each_exception_has_its_own) {
    auto const replaces = [&]() -> task<> {
        try {
            co_await passes_on();
        } catch (std::runtime_error const&) {
        }
        throw std::logic_error("another");
    };
    async_run(loop.get_executor(), replaces(), {},
              [&](task_result<void>& r) { EXPECT_EQ(r.failure().stack().size(), 1u); });
    loop.run();
    EXPECT_TRUE(async_stacktrace::of(nullptr).empty());
    EXPECT_TRUE(async_stacktrace::of(std::make_exception_ptr(std::runtime_error("new"))).empty());
}

TEST_F(async_stacktrace_test, survives_combinators_and_scopes) {
    auto const nothing = []() -> task<> { co_return; };
    std::vector<task<>> all;
    all.push_back(nothing());
    all.push_back(passes_on());
    all.push_back(passes_on());
    async_run(loop.get_executor(), when_all(std::move(all)), {}, [&](task_result<void>& r) {
        auto const stack = r.failure().stack();
        ASSERT_EQ(stack.size(), 3u) << stack.to_string();
        expect_frame(stack, 0, "throws()", thrown_behind);
    });
    auto const scoped = [&]() -> task<> {
        co_await task_scope::run([&](task_scope& scope) -> task<> {
            scope.spawn(passes_on());
            co_return;
        });
    };
    async_run(loop.get_executor(), scoped(), {}, [&](task_result<void>& r) {
        auto const stack = r.failure().stack();
        ASSERT_EQ(stack.size(), 3u) << stack.to_string();
        expect_frame(stack, 0, "throws()", thrown_behind);
    });
    loop.run();
}

TEST_F(async_stacktrace_test, allocates_nothing_in_a_steady_state) {
    auto const takes = []() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            if (i == 10) {
                before = heap_allocations();
            }
            EXPECT_EQ((co_await innermost()).size(), 2u);
        }
        if (pooled_memory_recycles()) {
            EXPECT_EQ(heap_allocations() - before, 0u);
        }
    };
    loop.run(takes());
}

TEST(async_stacktrace_misuse, an_exception_that_nobody_awaits_is_told_with_its_stack) {
    EXPECT_DEATH(
        {
            manual_loop loop;
            async_run(loop.get_executor(), passes_on());
            loop.run();
        },
        "throws\\(\\) at .*because.*nobody awaits");
}

}  // namespace
}  // namespace plumb::test
