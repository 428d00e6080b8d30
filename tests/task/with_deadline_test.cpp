// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/with_deadline.hpp>

#include <plumb/task/shield.hpp>

#include "support/allocations.hpp"
#include "support/context.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

task<int> after(std::chrono::nanoseconds d, int value) {
    (co_await co_wait(d)).value();
    co_return value;
}

class with_deadline_test : public on_every_context {
protected:
    /// Runs it. @return the code of what it throws
    template <class T>
    std::error_code failure_of(task<T> t, stop_token stop = {}) {
        try {
            (void)run(std::move(t), stop);
        } catch (std::system_error const& e) {
            return e.code();
        }
        return {};
    }
};

INSTANTIATE_TEST_SUITE_P(backends, with_deadline_test, every_backend(), name_of_backend);

TEST_P(with_deadline_test, gives_what_comes_in_time) {
    EXPECT_EQ(run(with_timeout(1h, after(1ms, 5))), 5);
    EXPECT_EQ(run(with_deadline(deadline(), after(1ms, 6))), 6) << "no deadline at all";
    EXPECT_EQ(run(with_deadline(now() + 1h, after(1ms, 7))), 7);
}

TEST_P(with_deadline_test, throws_timed_out_at_the_deadline) {
    auto const begin = now();
    EXPECT_EQ(failure_of(with_timeout(2ms, after(1h, 5))), std::errc::timed_out);
    EXPECT_EQ(failure_of(with_deadline(now() + 2ms, after(1h, 5))), std::errc::timed_out);
    EXPECT_GE(now() - begin, 4ms);
    EXPECT_LT(now() - begin, 1min);
}

TEST_P(with_deadline_test, a_time_that_is_over_stops_what_waits) {
    EXPECT_EQ(failure_of(with_timeout(0s, after(1h, 5))), std::errc::timed_out);
    EXPECT_EQ(failure_of(with_timeout(-1s, after(1h, 5))), std::errc::timed_out);
}

TEST_P(with_deadline_test, a_value_that_comes_all_the_same_is_not_lost) {
    auto const stubborn = []() -> task<int> {
        auto const waited = co_await co_wait(1h);
        co_return waited ? 0 : 8;
    };
    EXPECT_EQ(run(with_timeout(1ms, stubborn())), 8);
}

TEST_P(with_deadline_test, another_exception_passes) {
    auto const fails = []() -> task<> {
        (void)co_await co_wait(1h);
        throw std::runtime_error("another");
    };
    EXPECT_THROW(run(with_timeout(1ms, fails())), std::runtime_error);
}

TEST_P(with_deadline_test, a_stop_of_the_caller_is_no_timeout) {
    stop_source stop(executor());
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    EXPECT_EQ(failure_of(with_timeout(1h, after(2h, 5)), stop.token()),
              std::errc::operation_canceled);
}

TEST_P(with_deadline_test, the_inner_of_two_may_be_the_first_and_the_outer_too) {
    auto const inner = [](std::chrono::nanoseconds d) -> task<std::string> {
        try {
            co_return std::to_string(co_await with_timeout(d, after(1h, 5)));
        } catch (std::system_error const& e) {
            co_return e.code() == std::errc::timed_out ? "inner" : "outer";
        }
    };
    EXPECT_EQ(run(with_timeout(1h, inner(1ms))), "inner");
    EXPECT_EQ(run(with_timeout(1ms, inner(1h))), "outer");
}

TEST_P(with_deadline_test, leaves_no_timer_behind) {
    auto const begin = now();
    EXPECT_EQ(run(with_timeout(1h, after(1ms, 5))), 5);
    run();
    EXPECT_LT(now() - begin, 1min) << "the loop has nothing to wait for";
}

TEST_P(with_deadline_test, destroyed_where_it_waits_it_leaves_nothing_behind) {
    int alive = 0;
    {
        struct sentinel {
            explicit sentinel(int& a) : alive(a) { ++alive; }
            sentinel(sentinel const&) = delete;
            sentinel& operator=(sentinel const&) = delete;
            ~sentinel() { --alive; }
            int& alive;
        };
        auto const waits = [&]() -> task<> {
            sentinel const here(alive);
            (void)co_await co_wait(2h);
        };
        launch(with_timeout(1h, waits()));
        auto const look = [&]() -> task<> {
            (void)co_await co_wait(1ms);
            EXPECT_EQ(alive, 1);
        };
        run(look());
    }
    end_context();
    EXPECT_EQ(alive, 0);
}

TEST_P(with_deadline_test, allocates_nothing_in_a_steady_state) {
    auto const wait = []() -> task<int> {
        (co_await co_wait(0s)).value();
        co_return 1;
    };
    auto const loop = [&]() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            if (i == 20) {
                before = heap_allocations();
            }
            (void)co_await with_timeout(1h, wait());
        }
        if (pooled_memory_recycles() && !simulated()) {
            EXPECT_EQ(heap_allocations() - before, 0u);
        }
    };
    run(loop());
}

/// What a stop request does not reach.
class shield_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, shield_test, every_backend(), name_of_backend);

TEST_P(shield_test, a_stop_reaches_what_comes_after_and_not_what_it_shields) {
    stop_source stop(executor());
    auto const shielded = [&]() -> task<> {
        EXPECT_EQ(co_await shield(after(3ms, 4)), 4);
        EXPECT_TRUE(stop.stop_requested());
        auto const waited = co_await co_wait(1h);
        EXPECT_EQ(waited.error(), std::errc::operation_canceled);
    };
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    run(shielded(), stop.token());
}

TEST_P(shield_test, a_timeout_waits_for_what_is_shielded_inside) {
    auto const inside = []() -> task<int> { co_return co_await shield(after(3ms, 4)); };
    auto const begin = now();
    EXPECT_EQ(run(with_timeout(1ms, inside())), 4);
    EXPECT_GE(now() - begin, 3ms);
}

}  // namespace
}  // namespace plumb::test
