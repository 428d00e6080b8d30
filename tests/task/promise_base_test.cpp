// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/promise_base.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <cstdint>
#include <source_location>
#include <string_view>

namespace plumb::test {
namespace {

struct executor_alone {
    bool await_ready();
    void await_suspend(std::coroutine_handle<>);
    void await_resume();
};

struct asks_for_executor {
    executor_ref seen;

    bool await_ready() const noexcept { return false; }
    template <executor E>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h, E const& where) noexcept {
        seen = where;
        return where.dispatch(h);
    }
    executor_ref await_resume() const noexcept { return seen; }
};

static_assert(affine_awaitable<asks_for_executor>);
static_assert(affine_awaitable<gate> && affine_awaitable<this_env>);
static_assert(!affine_awaitable<executor_alone> && !affine_awaitable<std::suspend_always>);

class promise_base_test : public ::testing::Test {
protected:
    manual_loop loop;
};

task<io_env const*> env_below(int levels) {
    if (levels == 0) {
        co_return &co_await this_env();
    }
    co_return co_await env_below(levels - 1);
}

TEST_F(promise_base_test, this_env_is_the_environment_of_the_launcher_at_every_depth) {
    stop_source stop(loop.get_executor());
    auto const look = [&]() -> task<> {
        io_env const& mine = co_await this_env();
        EXPECT_EQ(mine.executor, executor_ref(loop.get_executor()));
        EXPECT_EQ(mine.stop, stop.token());
        EXPECT_EQ(co_await env_below(0), &mine);
        EXPECT_EQ(co_await env_below(20), &mine);
    };
    loop.run(look(), stop.token());
}

TEST_F(promise_base_test, this_env_does_not_suspend) {
    auto const look = [&]() -> task<> {
        auto const before = loop.count();
        for (int i = 0; i < 1000; ++i) {
            (void)co_await this_env();
        }
        EXPECT_EQ(loop.count(), before);
    };
    loop.run(look());
}

TEST_F(promise_base_test, an_awaitable_is_handed_the_environment) {
    struct asks {
        io_env const* seen = nullptr;
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> h,
                                              io_env const& env) noexcept {
            seen = &env;
            return h;
        }
        io_env const* await_resume() const noexcept { return seen; }
    };
    auto const look = []() -> task<> {
        asks kept;
        EXPECT_EQ(co_await kept, &co_await this_env());
        EXPECT_EQ(kept.seen, &co_await this_env()) << "the awaitable was copied";
        EXPECT_EQ(co_await asks{}, &co_await this_env());
    };
    loop.run(look());
}

TEST_F(promise_base_test, an_awaitable_may_take_the_executor_alone) {
    auto const look = [&]() -> task<> {
        EXPECT_EQ(co_await asks_for_executor{}, executor_ref(loop.get_executor()));
    };
    loop.run(look());
}

TEST_F(promise_base_test, an_awaitable_that_is_ready_is_not_asked_to_suspend) {
    struct ready {
        bool await_ready() const noexcept { return true; }
        void await_suspend(std::coroutine_handle<>, io_env const&) const noexcept { ADD_FAILURE(); }
        int await_resume() const noexcept { return 5; }
    };
    EXPECT_EQ(loop.run([]() -> task<int> { co_return co_await ready{}; }()), 5);
}

/// Keeps the coroutine that awaits it, with its promise.
struct watched_gate : gate {
    promise_base const* waiting = nullptr;

    void await_suspend(std::coroutine_handle<> h, io_env const& env) noexcept {
        gate::await_suspend(h, env);
        waiting = &std::coroutine_handle<task<>::promise_type>::from_address(h.address()).promise();
    }
};

TEST_F(promise_base_test, a_promise_knows_where_it_waits_and_for_whom) {
    watched_gate inner;
    std::uint_least32_t line = 0;
    auto const below = [&]() -> task<> {
        line = std::source_location::current().line() + 1;
        co_await inner;
        line = std::source_location::current().line() + 1;
        co_await inner;
    };
    std::uint_least32_t outer_line = 0;
    auto const above = [&]() -> task<> {
        outer_line = std::source_location::current().line() + 1;
        co_await below();
    };
    async_run(loop.get_executor(), above());
    loop.run();

    ASSERT_NE(inner.waiting, nullptr);
    EXPECT_EQ(inner.waiting->location().line(), line);
    EXPECT_TRUE(
        std::string_view(inner.waiting->location().file_name()).ends_with("promise_base_test.cpp"));
    auto const up = std::coroutine_handle<task<>::promise_type>::from_address(
        inner.waiting->continuation().address());
    EXPECT_EQ(up.promise().location().line(), outer_line);

    ASSERT_TRUE(inner.open());
    EXPECT_EQ(inner.waiting->location().line(), line);
    ASSERT_TRUE(inner.open());
    EXPECT_TRUE(loop.roots().empty());
}

task<bool> yes() { co_return true; }

task<> awaits_in_a_condition() {
    if (co_await yes()) {
    }
}

TEST_F(promise_base_test, a_frame_that_the_compiler_laid_out_wrongly_is_refused) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12
    EXPECT_DEATH((void)awaits_in_a_condition(), "name the result");
#else
    bool ended = false;
    async_run(loop.get_executor(), awaits_in_a_condition(), {}, [&](auto&) { ended = true; });
    loop.run();
    EXPECT_TRUE(ended);
#endif
}

}  // namespace
}  // namespace plumb::test
