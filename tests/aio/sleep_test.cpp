// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/sleep.hpp>

#include "support/context.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <system_error>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class sleep_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, sleep_test, every_backend(), name_of_backend);

TEST_P(sleep_test, is_never_early) {
    auto const nap = [](deadline until) -> task<> { co_await aio::sleep(until); };
    auto const begin = now();
    run(nap(5ms));
    EXPECT_GE(now() - begin, 5ms);
    auto const until = now() + 5ms;
    run(nap(until));
    EXPECT_GE(now(), until);
    auto const system_until = system_now() + 5ms;
    run(nap(system_until));
    EXPECT_GE(system_now(), system_until);
}

TEST_P(sleep_test, for_no_time_or_until_the_past_goes_on_at_once) {
    auto const nap = [&]() -> task<> {
        co_await aio::sleep(0s);
        co_await aio::sleep(-1s);
        co_await aio::sleep(now() - 1h);
    };
    auto const begin = now();
    run(nap());
    EXPECT_LT(now() - begin, 5s);
}

TEST_P(sleep_test, ends_in_the_order_of_the_times) {
    std::string order;
    auto const nap = [&](std::chrono::milliseconds d, char name) -> task<> {
        co_await aio::sleep(d);
        order += name;
    };
    launch(nap(30ms, 'c'));
    launch(nap(10ms, 'a'));
    launch(nap(20ms, 'b'));
    run();
    EXPECT_EQ(order, "abc");
}

TEST_P(sleep_test, to_the_same_time_ends_in_the_order_of_the_calls) {
    std::string order;
    auto const until = now() + 10ms;
    auto const nap = [&](char name) -> task<> {
        co_await aio::sleep(until);
        order += name;
    };
    for (char const name : {'a', 'b', 'c', 'd'}) {
        launch(nap(name));
    }
    run();
    EXPECT_EQ(order, "abcd");
}

TEST_P(sleep_test, throws_when_its_task_is_stopped) {
    stop_source stop(executor());
    auto const nap = []() -> task<std::error_code> {
        try {
            co_await aio::sleep(1h);
        } catch (std::system_error const& e) {
            co_return e.code();
        }
        co_return std::error_code();
    };
    auto const request = [&]() -> task<> {
        co_await aio::sleep(1ms);
        stop.request_stop();
    };
    launch(request());
    EXPECT_EQ(run(nap(), stop.token()), std::errc::operation_canceled);
    EXPECT_EQ(run(nap(), stop.token()), std::errc::operation_canceled) << "requested before";
}

class simulated_sleep_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, simulated_sleep_test, ::testing::Values(multiplexer_kind::sim),
                         name_of_backend);

TEST_P(simulated_sleep_test, of_an_hour_takes_no_time) {
    auto const nap = []() -> task<> {
        for (int i = 0; i < 60; ++i) {
            co_await aio::sleep(1min);
        }
    };
    auto const begin = now();
    auto const really = std::chrono::steady_clock::now();
    run(nap());
    EXPECT_GE(now() - begin, 1h);
    EXPECT_LT(std::chrono::steady_clock::now() - really, 10s);
}

}  // namespace
}  // namespace plumb::test
