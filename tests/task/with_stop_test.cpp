// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/with_stop.hpp>

#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/task.hpp>

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace plumb::test {
namespace {

class with_stop_test : public ::testing::Test {
protected:
    /// Runs a task, with the token of `own`, to its end.
    void run(task<> t) {
        async_run(context.get_executor(), std::move(t), own.token());
        ASSERT_TRUE(context.run());
    }
    /// Does something when all that was launched waits.
    template <class F>
    void later(F f) {
        ASSERT_TRUE(context.multiplexer().post(std::move(f)));
    }

    io_context context;
    stop_source own{context.get_executor()};
    stop_source other{context.get_executor()};
};

TEST_F(with_stop_test, a_stop_of_the_coroutine_does_not_reach_what_it_awaits) {
    auto pipe = pipe_handle::anonymous_pipe().value();
    std::string got;
    auto reading = [&]() -> task<> {
        std::array<char, 8> room;
        later([&] {
            own.request_stop();
            ASSERT_TRUE(pipe.writer.write(std::string_view("kept")));
        });
        auto const read = co_await with_stop(other.token(), pipe.reader.co_read(buffer(room)));
        got.assign(room.data(), read.bytes_transferred());
        auto const after = co_await pipe.reader.co_read(buffer(room));
        EXPECT_EQ(after.error(), std::errc::operation_canceled);
    };
    run(reading());
    EXPECT_EQ(got, "kept");
}

TEST_F(with_stop_test, a_stop_of_the_other_token_reaches_what_it_awaits) {
    bool ended = false;
    auto waiting = [&]() -> task<> {
        later([&] { other.request_stop(); });
        auto const waited = co_await with_stop(other.token(), co_wait(deadline()));
        EXPECT_EQ(waited.error(), std::errc::operation_canceled);
        EXPECT_FALSE((co_await this_env()).stop.stop_requested());
        ended = true;
    };
    run(waiting());
    EXPECT_TRUE(ended);
}

TEST_F(with_stop_test, only_the_other_token_counts_at_the_start) {
    own.request_stop();
    bool ended = false;
    auto waiting = [&]() -> task<> {
        EXPECT_TRUE(co_await with_stop(stop_token(), co_wait(std::chrono::nanoseconds(0))));
        other.request_stop();
        auto const waited = co_await with_stop(other.token(), co_wait(deadline()));
        EXPECT_EQ(waited.error(), std::errc::operation_canceled);
        ended = true;
    };
    run(waiting());
    EXPECT_TRUE(ended);
}

TEST_F(with_stop_test, a_task_and_all_below_it_have_the_other_token_and_the_same_executor) {
    auto below = [&]() -> task<int> {
        io_env const& env = co_await this_env();
        EXPECT_EQ(env.stop, other.token());
        EXPECT_EQ(env.executor, executor_ref(context.get_executor()));
        co_return 42;
    };
    auto middle = [&]() -> task<int> { co_return co_await below(); };
    int got = 0;
    auto top = [&]() -> task<> {
        got = co_await with_stop(other.token(), middle());
        EXPECT_EQ((co_await this_env()).stop, own.token());
    };
    run(top());
    EXPECT_EQ(got, 42);
}

TEST_F(with_stop_test, passes_exceptions_and_references_on) {
    int object = 0;
    auto gives = [&]() -> task<int&> { co_return object; };
    auto throws = []() -> task<> {
        throw std::runtime_error("thrown below");
        co_return;
    };
    std::string caught;
    auto top = [&]() -> task<> {
        EXPECT_EQ(&co_await with_stop(other.token(), gives()), &object);
        try {
            co_await with_stop(other.token(), throws());
        } catch (std::runtime_error const& e) {
            caught = e.what();
        }
    };
    run(top());
    EXPECT_EQ(caught, "thrown below");
}

}  // namespace
}  // namespace plumb::test
