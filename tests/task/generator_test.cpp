// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/generator.hpp>

#include <plumb/exec/pooled_memory.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

static_assert(std::ranges::input_range<generator<int>>);
static_assert(!std::is_copy_constructible_v<generator<int>>);
static_assert(sizeof(generator<int>) == sizeof(void*));

generator<int> count(int first, int last) {
    for (int i = first; i <= last; ++i) {
        co_yield i;
    }
}

TEST(generator, gives_each_value_as_it_is_asked_for) {
    int made = 0;
    auto const make = [](int& m) -> generator<int> {
        for (;;) {
            co_yield ++m;
        }
    };
    int sum = 0;
    for (int const n : make(made)) {
        sum += n;
        if (n == 4) {
            break;
        }
    }
    EXPECT_EQ(sum, 10);
    EXPECT_EQ(made, 4);
}

TEST(generator, may_yield_nothing) {
    for (int const n : count(1, 0)) {
        ADD_FAILURE() << n;
    }
}

TEST(generator, works_with_the_views_of_the_library) {
    int sum = 0;
    for (int const n : count(1, 100) | std::views::filter([](int i) { return i % 2 == 0; }) |
                           std::views::take(3)) {
        sum += n;
    }
    EXPECT_EQ(sum, 2 + 4 + 6);
}

TEST(generator, yields_temporaries_references_and_what_can_only_be_moved) {
    auto const texts = []() -> generator<std::string> {
        co_yield "one";
        std::string two = "two";
        co_yield two;
        co_yield std::move(two);
    };
    std::string all;
    for (std::string& text : texts()) {
        all += text;
    }
    EXPECT_EQ(all, "onetwotwo");

    int object = 1;
    auto const refer = [](int& o) -> generator<int&> { co_yield o; };
    for (int& o : refer(object)) {
        EXPECT_EQ(&o, &object);
    }

    auto const pointers = []() -> generator<std::unique_ptr<int>> {
        co_yield std::make_unique<int>(3);
    };
    for (auto& p : pointers()) {
        auto const taken = std::move(p);
        EXPECT_EQ(*taken, 3);
    }
}

TEST(generator, an_exception_leaves_where_the_next_value_is_asked_for) {
    auto const fail = [](bool first) -> generator<int> {
        if (first) {
            throw std::runtime_error("at the start");
        }
        co_yield 1;
        throw std::runtime_error("later");
    };
    auto early = fail(true);
    EXPECT_THROW((void)early.begin(), std::runtime_error);
    auto late = fail(false);
    auto i = late.begin();
    EXPECT_EQ(*i, 1);
    EXPECT_THROW(++i, std::runtime_error);
    EXPECT_TRUE(i == late.end());
}

TEST(generator, destroyed_before_its_end_it_destroys_its_locals) {
    int alive = 0;
    auto const hold = [](counted) -> generator<int> {
        for (int i = 0;; ++i) {
            co_yield i;
        }
    };
    {
        auto g = hold(counted(alive));
        EXPECT_EQ(*g.begin(), 0);
        auto moved = std::move(g);
        EXPECT_GE(alive, 1);
    }
    EXPECT_EQ(alive, 0);
    {
        auto const never_begun = hold(counted(alive));
    }
    EXPECT_EQ(alive, 0);
}

TEST(generator, allocates_nothing_in_a_steady_state) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build recycles no memory";
    }
    int sum = 0;
    for (int const n : count(1, 3)) {
        sum += n;
    }
    auto const before = heap_allocations();
    for (int round = 0; round < 100; ++round) {
        for (int const n : count(1, 3)) {
            sum += n;
        }
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
    EXPECT_EQ(sum, 606);
}

TEST(generator_misuse, beginning_it_twice) {
    EXPECT_DEATH(
        {
            auto g = count(1, 3);
            (void)g.begin();
            (void)g.begin();
        },
        "a generator was begun twice");
}

}  // namespace
}  // namespace plumb::test
