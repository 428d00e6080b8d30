// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/retry.hpp>

#include "support/context.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class retry_test : public on_every_context {
protected:
    /// Fails this often before it gives how often it was tried.
    task<int> fail_first(int failures) {
        ++tried;
        if (tried <= failures) {
            throw std::runtime_error("attempt " + std::to_string(tried));
        }
        co_return tried;
    }

    int tried = 0;
};

INSTANTIATE_TEST_SUITE_P(backends, retry_test, every_backend(), name_of_backend);

TEST_P(retry_test, a_success_is_not_tried_again) {
    EXPECT_EQ(run(retry({.first_pause = 1h}, [&] { return fail_first(0); })), 1);
}

TEST_P(retry_test, pauses_longer_each_time_up_to_the_longest) {
    auto const begin = now();
    backoff const how{.attempts = 5, .first_pause = 1ms, .longest_pause = 3ms, .factor = 2};
    EXPECT_EQ(run(retry(how, [&] { return fail_first(4); })), 5);
    EXPECT_GE(now() - begin, 1ms + 2ms + 3ms + 3ms);
}

TEST_P(retry_test, throws_the_last_failure_when_all_attempts_are_used) {
    backoff const how{.attempts = 3, .first_pause = 0ms};
    try {
        run(retry(how, [&] { return fail_first(9); }));
        ADD_FAILURE();
    } catch (std::runtime_error const& e) {
        EXPECT_STREQ(e.what(), "attempt 3");
    }
    EXPECT_EQ(tried, 3);
}

TEST_P(retry_test, gives_up_at_once_where_trying_again_is_not_worthwhile) {
    backoff const how{.first_pause = 1h,
                      .worthwhile = [](std::exception_ptr const&) { return false; }};
    EXPECT_THROW(run(retry(how, [&] { return fail_first(9); })), std::runtime_error);
    EXPECT_EQ(tried, 1);
}

TEST_P(retry_test, a_stop_ends_a_pause) {
    stop_source stop(executor());
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    try {
        run(retry({.first_pause = 1h, .longest_pause = 1h}, [&] { return fail_first(9); }),
            stop.token());
        ADD_FAILURE();
    } catch (std::system_error const& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
    EXPECT_EQ(tried, 1);
}

TEST_P(retry_test, what_was_cancelled_is_not_tried_again) {
    auto const cancelled = [&]() -> task<> {
        ++tried;
        throw std::system_error(std::make_error_code(std::errc::operation_canceled));
        co_return;
    };
    EXPECT_THROW(run(retry({.first_pause = 0ms}, cancelled)), std::system_error);
    EXPECT_EQ(tried, 1);
}

}  // namespace
}  // namespace plumb::test
