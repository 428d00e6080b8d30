// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/async_future.hpp>

#include <plumb/exec/thread_pool.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>

namespace plumb::test {
namespace {

TEST(async_future, gives_the_value_on_another_thread) {
    thread_pool pool(2);
    auto const f = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
    EXPECT_EQ(*async_future(pool.get_executor(), f()).get(), 3);
    auto const g = []() -> task<> { co_return; };
    async_future(pool.get_executor(), g()).get();
    int value = 4;
    auto const h = [&]() -> task<int&> { co_return value; };
    EXPECT_EQ(&async_future(pool.get_executor(), h()).get(), &value);
}

TEST(async_future, throws_what_the_task_threw) {
    thread_pool pool(1);
    auto const f = []() -> task<int> {
        throw std::runtime_error("no");
        co_return 1;
    };
    auto future = async_future(pool.get_executor(), f());
    EXPECT_THROW((void)future.get(), std::runtime_error);
}

TEST(async_future, takes_the_stop_of_the_standard_library) {
    thread_pool pool(1);
    std::stop_source stop;
    stop.request_stop();
    auto const f = []() -> task<bool> { co_return (co_await this_env()).stop.stop_requested(); };
    EXPECT_TRUE(async_future(pool.get_executor(), f(), stop.get_token()).get());
}

TEST(async_future, gives_the_value_when_the_parameters_are_gone) {
    int alive = 0;
    std::future<int> future;
    /// Looks, at its end, whether the value was there already.
    struct parameter {
        counted here;
        std::future<int> const* of;
        ~parameter() {
            if (of->valid()) {
                EXPECT_EQ(of->wait_for(std::chrono::seconds(0)), std::future_status::timeout);
            }
        }
    };
    manual_loop loop;
    auto const f = [](parameter) -> task<int> { co_return 1; };
    future = async_future(loop.get_executor(), f({counted(alive), &future}));
    loop.run();
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(future.get(), 1);
}

TEST(async_future, of_a_task_that_ends_with_its_context_is_a_broken_promise) {
    std::optional<manual_loop> loop(std::in_place);
    auto const f = []() -> task<int> { co_return 1; };
    auto future = async_future(loop->get_executor(), f());
    loop.reset();
    EXPECT_THROW((void)future.get(), std::future_error);
}

}  // namespace
}  // namespace plumb::test
