// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/stopped_by.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/channel.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class stopped_by_test : public ::testing::Test {
protected:
    task<int> receive() {
        auto const got = co_await values.receive();
        order += got ? 'v' : '-';
        co_return got ? *got : 0;
    }

    manual_loop loop;
    channel<int> values{1};
    std::string order;
};

TEST_F(stopped_by_test, gives_what_the_task_gives) {
    ASSERT_TRUE(values.try_send(5));
    EXPECT_EQ(loop.run(stopped_by(std::stop_token(), receive())), 5);
    ASSERT_TRUE(values.try_send(6));
    EXPECT_EQ(loop.run(stopped_by(std::stop_source().get_token(), receive())), 6);
}

TEST_F(stopped_by_test, a_request_of_either_side_stops_it) {
    std::stop_source outer;
    async_run(loop.get_executor(), stopped_by(outer.get_token(), receive()));
    loop.run();
    outer.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    stop_source inner(loop.get_executor());
    std::stop_source quiet;
    async_run(loop.get_executor(), stopped_by(quiet.get_token(), receive()), inner.token());
    loop.run();
    inner.request_stop();
    loop.run();
    EXPECT_EQ(order, "--");
}

TEST_F(stopped_by_test, launchers_take_the_stop_of_the_standard_library) {
    int completed = 0;
    {
        std::stop_source stop;
        async_run(loop.get_executor(), receive(), stop.get_token());
        async_run(loop.get_executor(), receive(), stop.get_token(),
                  [&](task_result<int>& r) { completed += r.take() == 0; });
        loop.run();
        EXPECT_EQ(order, "");
        stop.request_stop();
    }
    loop.run();
    EXPECT_EQ(order, "--");
    EXPECT_EQ(completed, 1);
}

TEST_F(stopped_by_test, a_request_from_before_is_seen) {
    std::stop_source stop;
    stop.request_stop();
    ASSERT_TRUE(values.try_send(1));
    EXPECT_EQ(loop.run(stopped_by(stop.get_token(), receive())), 0);
    EXPECT_EQ(order, "-");
    EXPECT_EQ(values.size(), 1u);
}

TEST_F(stopped_by_test, the_next_turn_comes_after_what_was_queued_before) {
    auto const step = [&](char name) -> task<> {
        order += name;
        co_await next_turn();
        order += name;
    };
    async_run(loop.get_executor(), step('a'));
    async_run(loop.get_executor(), step('b'));
    loop.run();
    EXPECT_EQ(order, "abab");
}

TEST(stopped_by_threads, another_thread_stops_what_waits) {
    io_context context;
    bool cancelled = false;
    auto const wait = [&]() -> task<> {
        auto const waited = co_await co_wait(1h);
        cancelled = !waited && waited.error() == std::errc::operation_canceled;
    };
    std::stop_source stop;
    async_run(context.get_executor(), stopped_by(stop.get_token(), wait()));
    std::jthread const stops([&] { stop.request_stop(); });
    ASSERT_TRUE(context.run());
    EXPECT_TRUE(cancelled);
}

TEST(stopped_by_threads, requests_that_race_the_end_are_waited_for) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(2);
        std::stop_source stop;
        auto const nothing = []() -> task<> { co_return; };
        async_run(pool.get_executor(), stopped_by(stop.get_token(), nothing()));
        stop.request_stop();
        pool.join();
    }
}

}  // namespace
}  // namespace plumb::test
