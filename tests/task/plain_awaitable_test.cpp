// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/plain_awaitable.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/run_on.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

/// Of another library: knows nothing of executors, and is resumed by whoever comes.
struct foreign {
    std::coroutine_handle<>* waiting;
    int value = 0;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept { *waiting = h; }
    [[nodiscard]] int await_resume() const noexcept { return value; }
};

/// Becomes one by the operator.
struct by_member {
    foreign it;
    foreign operator co_await() && noexcept { return it; }
};
struct by_function {
    foreign it;
};
foreign operator co_await(by_function f) noexcept { return f.it; }

static_assert(plain_awaitable<foreign> && plain_awaitable<foreign&>);
static_assert(plain_awaitable<by_member> && plain_awaitable<by_function>);
static_assert(!plain_awaitable<by_member&>, "it is to be awaited as a temporary");
static_assert(!plain_awaitable<int>);

class plain_awaitable_test : public ::testing::Test {
protected:
    manual_loop loop;
    std::coroutine_handle<> waiting;
    std::string order;
};

TEST_F(plain_awaitable_test, goes_on_on_its_executor_whoever_resumes_it) {
    auto const f = [&]() -> task<> {
        foreign it{&waiting, 1};
        int const got = co_await it;
        order += static_cast<char>('0' + got);
        order += loop.get_executor().running_in_this_thread() ? 'i' : 'o';
    };
    async_run(loop.get_executor(), f());
    loop.run();
    std::thread([&] { waiting.resume(); }).join();
    EXPECT_EQ(order, "") << "it is posted";
    loop.run();
    EXPECT_EQ(order, "1i");
}

TEST_F(plain_awaitable_test, inside_of_its_executor_goes_on_at_once) {
    auto const f = [&]() -> task<> {
        order += 'a';
        co_await foreign{&waiting};
        order += 'c';
    };
    auto const g = [&]() -> task<> {
        order += 'b';
        waiting.resume();
        order += 'd';
        co_return;
    };
    async_run(loop.get_executor(), f());
    async_run(loop.get_executor(), g());
    loop.run();
    EXPECT_EQ(order, "abcd");
}

TEST_F(plain_awaitable_test, the_operator_co_await_makes_one) {
    auto const f = [&]() -> task<int> {
        int const one = co_await by_member{{&waiting, 1}};
        co_return one * 10 + co_await by_function{{&waiting, 2}};
    };
    std::optional<int> got;
    async_run(loop.get_executor(), f(), {}, [&](task_result<int>& r) { got = r.take(); });
    loop.run();
    waiting.resume();
    loop.run();
    waiting.resume();
    loop.run();
    EXPECT_EQ(got, 12);
}

TEST_F(plain_awaitable_test, what_does_not_suspend_goes_on) {
    struct refuses {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<>) noexcept { return false; }
        [[nodiscard]] int await_resume() const noexcept { return 7; }
    };
    struct transfers {
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) noexcept { return h; }
        void await_resume() const noexcept {}
    };
    auto const f = []() -> task<int> {
        co_await std::suspend_never();
        co_await transfers();
        co_return co_await refuses();
    };
    EXPECT_EQ(loop.run(f()), 7);
}

TEST_F(plain_awaitable_test, destroyed_where_it_waits_it_leaves_nothing_behind) {
    int alive = 0;
    auto const f = [&]() -> task<> {
        counted const here(alive);
        co_await foreign{&waiting};
    };
    {
        manual_loop ends;
        async_run(ends.get_executor(), f());
        ends.run();
        EXPECT_EQ(alive, 1);
    }
    EXPECT_EQ(alive, 0);
}

/// Resumes at once, on a thread of a pool.
struct elsewhere_at_once : work {
    explicit elsewhere_at_once(thread_pool& p)
        : work([](work& w) noexcept { static_cast<elsewhere_at_once&>(w).waiting.resume(); }),
          pool(p) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) noexcept {
        waiting = h;
        pool.get_executor().post(this);
    }
    void await_resume() const noexcept {}
    thread_pool& pool;
    std::coroutine_handle<> waiting;
};

TEST(plain_awaitable_on_threads, the_context_goes_on_while_it_waits) {
    io_context context;
    thread_pool other(1);
    int done = 0;
    auto const f = [&]() -> task<> {
        for (; done < 30; ++done) {
            co_await elsewhere_at_once(other);
        }
    };
    async_run(context.get_executor(), f());
    ASSERT_TRUE(context.run());
    EXPECT_EQ(done, 30);
}

TEST(plain_awaitable_on_threads, many_are_resumed_by_another_thread) {
    thread_pool pool(2);
    thread_pool other(2);
    std::atomic<int> wrong = 0;
    std::atomic<int> left = 3;
    auto const f = [&]() -> task<> {
        for (int i = 0; i < 300; ++i) {
            co_await elsewhere_at_once(other);
            wrong += pool.get_executor().running_in_this_thread() ? 0 : 1;
        }
        --left;
    };
    for (int i = 0; i < 3; ++i) {
        async_run(pool.get_executor(), f());
    }
    pool.join();
    other.join();
    EXPECT_EQ(left, 0);
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace plumb::test
