// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/run.hpp>

#include <plumb/aio/sleep.hpp>
#include <plumb/task/with_stop.hpp>

#include "aio/notification.hpp"
#include "support/context.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class run_test : public on_every_context {
protected:
    static std::error_code error_of(auto f) {
        try {
            f();
        } catch (std::system_error const& e) {
            return e.code();
        }
        return {};
    }
};

INSTANTIATE_TEST_SUITE_P(backends, run_test, every_backend(), name_of_backend);

TEST_P(run_test, gives_the_result) {
    EXPECT_EQ(aio::run(context(), []() -> task<int> { co_return 42; }()), 42);
    aio::run(context(), []() -> task<> { co_return; }());
    EXPECT_EQ(
        *aio::run(context(),
                  []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); }()),
        3);
    int object = 0;
    auto const refer = [&]() -> task<int&> { co_return object; };
    EXPECT_EQ(&aio::run(context(), refer()), &object);
    EXPECT_EQ(&aio::run(context(), refer), &object);
    EXPECT_EQ(&aio::run(refer), &object);
}

TEST_P(run_test, throws_what_the_task_threw) {
    auto const fail = []() -> task<int> {
        throw std::runtime_error("because");
        co_return 1;
    };
    EXPECT_THROW((void)aio::run(context(), fail()), std::runtime_error);
    EXPECT_THROW((void)aio::run(context(), fail), std::runtime_error);
}

TEST_P(run_test, can_be_called_again) {
    for (int i = 0; i < 3; ++i) {
        auto const nap = [](int n) -> task<int> {
            co_await aio::sleep(1ms);
            co_return n;
        };
        EXPECT_EQ(aio::run(context(), nap(i)), i);
    }
}

TEST_P(run_test, keeps_the_callable_and_its_captures) {
    auto const text = aio::run(context(), [s = std::string(100, 'x')]() -> task<std::string> {
        co_await aio::sleep(1ms);
        co_return s;
    });
    EXPECT_EQ(text, std::string(100, 'x'));
}

TEST_P(run_test, makes_a_context_of_its_own) {
    auto const text = aio::run([s = std::string(100, 'x')]() -> task<std::string> {
        co_await aio::sleep(1ms);
        co_return s;
    });
    EXPECT_EQ(text, std::string(100, 'x'));
    EXPECT_EQ(aio::run([]() -> task<int> { co_return 1; }()), 1);
}

TEST_P(run_test, a_main_task_that_can_never_go_on_is_a_deadlock) {
    int alive = 0;
    aio::notification never;
    auto const wait = [&](counted) -> task<> { co_await never.wait_regardless(); };
    EXPECT_EQ(error_of([&] { aio::run(context(), wait(counted(alive))); }),
              std::errc::resource_deadlock_would_occur);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(aio::run(context(), []() -> task<int> { co_return 1; }()), 1)
        << "the context is as before";
}

TEST_P(run_test, a_main_task_that_is_stuck_is_stopped_before_it_is_destroyed) {
    aio::notification never;
    bool ended = false;
    auto const wait = [&]() -> task<> {
        co_await never.wait();
        EXPECT_TRUE((co_await this_env()).stop.stop_requested());
        ended = true;
    };
    EXPECT_EQ(error_of([&] { aio::run(context(), wait()); }),
              std::errc::resource_deadlock_would_occur);
    EXPECT_TRUE(ended);
}

TEST_P(run_test, a_callable_that_is_stuck_lives_as_long_as_its_coroutine) {
    auto never = std::make_shared<aio::notification>();
    std::weak_ptr<aio::notification> const watched = never;
    EXPECT_EQ(error_of([&] {
                  aio::run(context(), [never = std::move(never)]() -> task<> {
                      co_await never->wait_regardless();
                  });
              }),
              std::errc::resource_deadlock_would_occur);
    EXPECT_TRUE(watched.expired());
}

TEST_P(run_test, stops_what_was_launched_beside_the_main_task_and_waits_for_its_end) {
    std::string order;
    auto const beside = [&]() -> task<> {
        try {
            co_await aio::sleep(1h);
        } catch (std::system_error const& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
            order += 's';
        }
        co_await with_stop(stop_token(), aio::sleep(1ms));
        order += 'e';
    };
    auto const main = [&]() -> task<> {
        io_env const& env = co_await this_env();
        async_run(env.executor, beside(), env.stop);
        co_await aio::sleep(1ms);
        order += 'm';
    };
    auto const before = now();
    aio::run(context(), main());
    EXPECT_EQ(order, "mse");
    EXPECT_LT(now() - before, 1min);
    EXPECT_TRUE(context().roots().empty());
}

TEST_P(run_test, destroys_what_is_stuck_beside_the_main_task) {
    int alive = 0;
    aio::notification never;
    auto const beside = [&](counted) -> task<> { co_await never.wait_regardless(); };
    auto const main = [&]() -> task<int> {
        io_env const& env = co_await this_env();
        async_run(env.executor, beside(counted(alive)), env.stop);
        co_return 5;
    };
    EXPECT_EQ(aio::run(context(), main()), 5);
    EXPECT_EQ(alive, 0);
}

TEST_P(run_test, goes_on_with_what_the_end_of_a_stuck_task_lets_happen) {
    // The one that is stuck last wakes the other when it is destroyed, which then ends by itself.
    aio::notification first;
    aio::notification second;
    struct wakes {
        aio::notification& other;
        ~wakes() { other.notify(); }
    };
    bool ended = false;
    auto const older = [&]() -> task<> {
        co_await first.wait_regardless();
        ended = true;
    };
    auto const younger = [&]() -> task<> {
        wakes const w{first};
        co_await second.wait_regardless();
    };
    auto const main = [&]() -> task<> {
        io_env const& env = co_await this_env();
        async_run(env.executor, older(), env.stop);
        async_run(env.executor, younger(), env.stop);
    };
    aio::run(context(), main());
    EXPECT_TRUE(ended);
}

TEST_P(run_test, leaves_what_was_launched_before_it) {
    int alive = 0;
    aio::notification later;
    auto const older = [&](counted) -> task<> { co_await later.wait_regardless(); };
    launch(older(counted(alive)));
    aio::run(context(), []() -> task<> { co_return; }());
    EXPECT_EQ(alive, 1);
    later.notify();
    run();
    EXPECT_EQ(alive, 0);
}

TEST_P(run_test, from_inside_its_own_context_is_a_bug_that_is_told) {
    auto const inner = []() -> task<> { co_return; };
    auto const outer = [&]() -> task<> {
        aio::run(context(), inner());
        co_return;
    };
    EXPECT_DEATH(aio::run(context(), outer()),
                 "plumb: aio::run was called from inside the context");
}

}  // namespace
}  // namespace plumb::test
