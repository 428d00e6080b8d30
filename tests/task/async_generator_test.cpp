// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/async_generator.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/task/run_on.hpp>
#include <plumb/task/task.hpp>

#include "support/allocations.hpp"
#include "support/context.hpp"
#include "support/manual_loop.hpp"
#include "support/stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

async_generator<int> count(int first, int last) {
    for (int i = first; i <= last; ++i) {
        co_yield i;
    }
}

class async_generator_test : public ::testing::Test {
protected:
    manual_loop loop;
};

TEST_F(async_generator_test, gives_each_value_and_then_the_end) {
    auto const sum = []() -> task<int> {
        auto numbers = count(1, 4);
        int s = 0;
        while (auto const* const n = co_await numbers.next()) {
            s += *n;
        }
        auto const* const after = co_await numbers.next();
        EXPECT_EQ(after, nullptr) << "and ever after";
        co_return s;
    };
    EXPECT_EQ(loop.run(sum()), 10);
}

TEST_F(async_generator_test, awaits_between_its_values) {
    gate g;
    std::string order;
    auto const letters = [&]() -> async_generator<char> {
        co_yield 'a';
        co_await g;
        co_yield 'b';
    };
    auto const read = [&]() -> task<> {
        auto from = letters();
        while (auto const* const c = co_await from.next()) {
            order += *c;
        }
        order += '.';
    };
    async_run(loop.get_executor(), read());
    loop.run();
    EXPECT_EQ(order, "a");
    g.open();
    EXPECT_EQ(order, "ab.");
}

TEST_F(async_generator_test, yields_references_and_what_can_only_be_moved) {
    int object = 0;
    auto const refer = [](int& o) -> async_generator<int&> { co_yield o; };
    auto const make = []() -> async_generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(5);
    };
    auto const read = [&]() -> task<> {
        auto references = refer(object);
        int* const reference = co_await references.next();
        EXPECT_EQ(reference, &object);
        auto pointers = make();
        auto* const pointer = co_await pointers.next();
        auto const taken = std::move(*pointer);
        EXPECT_EQ(*taken, 5);
    };
    loop.run(read());
}

TEST_F(async_generator_test, an_exception_is_thrown_where_the_next_value_is_awaited) {
    auto const fail = []() -> async_generator<int> {
        co_yield 1;
        throw std::runtime_error("later");
    };
    auto const read = [&]() -> task<> {
        auto from = fail();
        auto const* const one = co_await from.next();
        EXPECT_EQ(*one, 1);
        bool thrown = false;
        try {
            (void)co_await from.next();
        } catch (std::runtime_error const&) {
            thrown = true;
        }
        EXPECT_TRUE(thrown);
        auto const* const after = co_await from.next();
        EXPECT_EQ(after, nullptr);
    };
    loop.run(read());
}

TEST_F(async_generator_test, destroyed_before_its_end_it_destroys_its_locals) {
    int alive = 0;
    auto const hold = [](counted) -> async_generator<int> {
        for (int i = 0;; ++i) {
            co_yield i;
        }
    };
    auto const read = [&]() -> task<> {
        auto from = hold(counted(alive));
        (void)co_await from.next();
        EXPECT_GE(alive, 1);
    };
    loop.run(read());
    EXPECT_EQ(alive, 0);
}

TEST_F(async_generator_test, has_the_environment_of_whoever_asks) {
    manual_loop other;
    auto const where = []() -> async_generator<executor_ref> {
        for (;;) {
            executor_ref here = (co_await this_env()).executor;
            co_yield here;
        }
    };
    bool ended = false;
    auto const read = [&]() -> task<> {
        auto from = where();
        auto const* const here = co_await from.next();
        EXPECT_EQ(*here, executor_ref(loop.get_executor()));
        auto const elsewhere = [&]() -> task<> {
            auto const* const there = co_await from.next();
            EXPECT_EQ(*there, executor_ref(other.get_executor()));
        };
        co_await run_on(other.get_executor(), elsewhere());
        ended = true;
    };
    async_run(loop.get_executor(), read());
    while (loop.run() + other.run() != 0) {
    }
    EXPECT_TRUE(ended);
}

TEST_F(async_generator_test, any_number_of_values_uses_constant_stack) {
    PLUMB_SKIP_WITHOUT_TAIL_CALL();
    auto const read = []() -> task<> {
        auto from = count(1, 1'000'000);
        std::intptr_t least = INTPTR_MAX;
        std::intptr_t most = INTPTR_MIN;
        while (auto const* const n = co_await from.next()) {
            (void)n;
            least = std::min(least, stack_depth());
            most = std::max(most, stack_depth());
        }
        EXPECT_LT(most - least, 1024);
    };
    loop.run(read());
}

TEST_F(async_generator_test, allocates_nothing_in_a_steady_state) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build recycles no memory";
    }
    auto const read = []() -> task<> {
        std::uint64_t before = 0;
        for (int round = 0; round < 100; ++round) {
            if (round == 10) {
                before = heap_allocations();
            }
            auto from = count(1, 3);
            while (auto const* const n = co_await from.next()) {
                (void)n;
            }
        }
        EXPECT_EQ(heap_allocations() - before, 0u);
    };
    loop.run(read());
}

/// With operations.
class async_generator_io_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, async_generator_io_test, every_backend(), name_of_backend);

async_generator<int> ticks(std::chrono::nanoseconds each) {
    for (int i = 0;; ++i) {
        (co_await co_wait(each)).value();
        co_yield i;
    }
}

TEST_P(async_generator_io_test, a_stop_reaches_what_it_awaits) {
    stop_source stop(executor());
    auto const read = [&]() -> task<int> {
        auto from = ticks(1ms);
        int last = -1;
        try {
            while (auto const* const tick = co_await from.next()) {
                last = *tick;
                if (last == 2) {
                    stop.request_stop();
                }
            }
        } catch (std::system_error const& e) {
            EXPECT_EQ(e.code(), std::errc::operation_canceled);
        }
        co_return last;
    };
    EXPECT_EQ(run(read(), stop.token()), 2);
}

TEST_P(async_generator_io_test, destroyed_where_it_waits_it_cancels_what_it_awaits) {
    auto const read = []() -> task<> {
        auto from = ticks(1h);
        (void)co_await from.next();
    };
    launch(read());
    auto const soon = []() -> task<> { (void)co_await co_wait(1ms); };
    run(soon());
    end_context();
}

}  // namespace
}  // namespace plumb::test
