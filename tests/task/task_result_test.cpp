// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task_result.hpp>

#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace plumb::test {
namespace {

std::exception_ptr failure() { return std::make_exception_ptr(std::runtime_error("because")); }

TEST(task_result, is_empty_at_first) {
    task_result<std::string> const r;
    EXPECT_FALSE(r.has_value());
    EXPECT_EQ(r.exception(), nullptr);
    task_result<void> const v;
    EXPECT_FALSE(v.has_value());
    EXPECT_EQ(v.exception(), nullptr);
}

TEST(task_result, keeps_its_state_when_it_is_moved) {
    task_result<std::unique_ptr<int>> value;
    value.set_value(std::make_unique<int>(3));
    task_result<std::unique_ptr<int>> moved(std::move(value));
    ASSERT_TRUE(moved.has_value());
    EXPECT_EQ(*moved.take(), 3);

    task_result<std::unique_ptr<int>> bad;
    bad.set_exception(failure());
    task_result<std::unique_ptr<int>> moved_bad(std::move(bad));
    EXPECT_FALSE(moved_bad.has_value());
    EXPECT_THROW((void)moved_bad.take(), std::runtime_error);

    task_result<void> nothing;
    nothing.set_value();
    task_result<void> moved_nothing(std::move(nothing));
    EXPECT_TRUE(moved_nothing.has_value());
    moved_nothing.take();
}

TEST(task_result, destroys_what_it_holds) {
    int alive = 0;
    {
        task_result<counted> r;
        r.set_value(counted(alive));
        EXPECT_EQ(alive, 1);
        task_result<counted> const moved(std::move(r));
        EXPECT_EQ(alive, 2);
    }
    EXPECT_EQ(alive, 0);
}

TEST(task_result, an_exception_replaces_a_value) {
    int alive = 0;
    task_result<counted> r;
    r.set_value(counted(alive));
    r.set_exception(failure());
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(r.has_value());
    EXPECT_THROW((void)r.take(), std::runtime_error);

    task_result<void> v;
    v.set_value();
    v.set_exception(failure());
    EXPECT_FALSE(v.has_value());
    EXPECT_THROW(v.take(), std::runtime_error);
}

}  // namespace
}  // namespace plumb::test
