// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation_connection.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_context.hpp>

#include "support/backend.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <thread>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// Each ends the process with a message that says what to do.
class io_misuse : public on_every_backend {
protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        on_every_backend::SetUp();
    }
    std::array<std::byte, 16> memory{};
    record_of<async_read> read;
    record_of<async_wait> waited;
};

INSTANTIATE_TEST_SUITE_P(backends, io_misuse, real_backends(), name_of_backend);

TEST_P(io_misuse, starting_an_operation_twice) {
    auto operation = connect(async_wait(multiplexer(), 1h), recorder(waited));
    (void)operation.start();
    EXPECT_DEATH((void)operation.start(), "started twice: reset it once it is completed");
}

TEST_P(io_misuse, starting_a_completed_operation_without_a_reset) {
    auto operation = connect(async_wait(multiplexer(), 0s), recorder(waited));
    (void)operation.start();
    settle();
    ASSERT_TRUE(operation.completed());
    EXPECT_DEATH((void)operation.start(), "started twice: reset it once it is completed");
}

TEST_P(io_misuse, moving_an_operation_after_its_start) {
    auto operation = connect(async_wait(multiplexer(), 1h), recorder(waited));
    (void)operation.start();
    EXPECT_DEATH(auto moved = std::move(operation),
                 "moved after its start: it is pinned until set_done");
}

TEST_P(io_misuse, resetting_an_operation_that_is_pending_or_queued) {
    auto pending = connect(async_wait(multiplexer(), 1h), recorder(waited));
    (void)pending.start();
    EXPECT_DEATH(pending.reset(), "reset before it was completed");
    auto queued = connect(async_wait(multiplexer(), 0s), recorder(waited));
    (void)queued.start();
    EXPECT_DEATH(queued.reset(), "reset before it was completed");
}

TEST_P(io_misuse, starting_on_a_handle_whose_multiplexer_is_gone) {
    auto tcp = tcp_pair();
    {
        auto operation = connect(async_read(tcp.second, buffer(memory), 0s), recorder(read));
        (void)operation.start();
        settle();
    }
    end_multiplexer();
    auto late = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    EXPECT_DEATH((void)late.start(), "whose multiplexer is gone");
}

TEST_P(io_misuse, starting_on_another_thread_than_the_one_that_drives) {
    auto tcp = tcp_pair();
    (void)multiplexer().try_run();
    EXPECT_DEATH(std::thread([&] {
                     auto operation =
                         connect(async_read(tcp.second, buffer(memory)), recorder(read));
                     (void)operation.start();
                 }).join(),
                 "on another thread than the one that drives");
}

TEST_P(io_misuse, canceling_polling_or_destroying_on_another_thread) {
    auto tcp = tcp_pair();
    auto operation =
        std::make_unique<io_operation_connection<async_read, recorder<io_result<buffers>>>>(
            async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation->start(), io_status::pending);
    EXPECT_DEATH(std::thread([&] { operation->cancel(); }).join(),
                 "on another thread than the one that drives");
    EXPECT_DEATH(std::thread([&] { (void)operation->poll(); }).join(),
                 "on another thread than the one that drives");
    EXPECT_DEATH(std::thread([&] { operation.reset(); }).join(),
                 "on another thread than the one that drives");
}

TEST_P(io_misuse, closing_a_handle_with_an_operation_in_flight_on_another_thread) {
    auto tcp = tcp_pair();
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_DEATH(std::thread([&] { (void)tcp.second.close(); }).join(),
                 "on another thread than the one that drives");
}

TEST_P(io_misuse, destroying_a_context_from_inside_its_run) {
    auto context = std::make_unique<io_context>(another());
    EXPECT_DEATH(
        {
            (void)context->multiplexer().post([&] { context.reset(); });
            (void)context->run();
        },
        "destroyed from inside its run");
}

TEST(io_misuse_of_the_environment, a_multiplexer_of_the_thread_that_cannot_be_had) {
    EXPECT_DEATH(
        {
            ::setenv("PLUMB_MULTIPLEXER", "unknown", 1);
            std::thread([] {
                (void)io_multiplexer::this_thread();
            }).join();  // this one may have it
        },
        "no i/o multiplexer can be had");
    EXPECT_DEATH(
        {
            ::setenv("PLUMB_MULTIPLEXER", "unknown", 1);
            io_context const context;
        },
        "no i/o multiplexer can be had");
}

TEST(io_misuse_of_the_environment, a_timer_on_a_thread_of_a_pool) {
    EXPECT_DEATH(
        {
            thread_pool pool(1);
            work item([](work&) noexcept { (void)async_wait(1ms); });
            pool.get_executor().post(&item);
            pool.join();
        },
        "begun on a thread of a thread_pool");
}

}  // namespace
}  // namespace plumb::test
