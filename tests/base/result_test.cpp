// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/result.hpp>

#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace {

using namespace plumb;
using std::errc;

result<int> half(int n) {
    if (n % 2 != 0) {
        return errc::argument_out_of_domain;
    }
    return n / 2;
}

static_assert(std::is_trivially_copy_constructible_v<result<int>>);
static_assert(std::is_trivially_destructible_v<result<int>>);
static_assert(std::is_trivially_copy_constructible_v<result<void>>);
static_assert(std::is_trivially_destructible_v<result<void>>);
static_assert(std::is_copy_assignable_v<result<int>> && std::is_copy_assignable_v<result<void>>);
static_assert(!std::is_copy_constructible_v<result<std::unique_ptr<int>>>);
static_assert(std::is_nothrow_move_constructible_v<result<std::unique_ptr<int>>>);
static_assert(!std::is_convertible_v<char const*, result<int>>);
static_assert(!std::is_convertible_v<result<int>, bool>);
static_assert(!std::is_convertible_v<result<int>, int>);
static_assert(std::is_same_v<decltype(std::declval<result<int>&>().value()), int&>);
static_assert(std::is_same_v<decltype(std::declval<result<int> const&>().value()), int const&>);
static_assert(std::is_same_v<decltype(std::declval<result<int>>().value()), int&&>);
static_assert(std::is_same_v<decltype(std::declval<result<int> const>().value()), int const&&>);

TEST(result, is_made_from_a_value_or_from_each_kind_of_error) {
    result<int> value = 7;
    result<int> code = std::make_error_code(errc::timed_out);
    result<int> posix = errc::timed_out;
    result<int> own = error::busy;
    result<int> unexpected = failure(errc::timed_out);
    result<void> nothing;
    result<void> failed = failure(error::busy);

    EXPECT_TRUE(value.has_value());
    EXPECT_EQ(*value, 7);
    EXPECT_FALSE(code);
    EXPECT_EQ(code.error(), errc::timed_out);
    EXPECT_EQ(posix.error(), errc::timed_out);
    EXPECT_EQ(own.error(), error::busy);
    EXPECT_EQ(unexpected.error(), errc::timed_out);
    EXPECT_TRUE(nothing);
    EXPECT_EQ(failed.error(), error::busy);
}

TEST(result, from_nothing_holds_a_value_made_from_nothing) {
    result<std::string> text = {};
    EXPECT_EQ(text.value(), "");
    result<std::string> made(std::in_place, 3u, 'x');
    EXPECT_EQ(made.value(), "xxx");
}

TEST(result, value_gives_the_value_or_throws_the_error) {
    result<int> r = 7;
    r.value() = 8;
    EXPECT_EQ(std::as_const(r).value(), 8);
    result<std::unique_ptr<int>> moved = std::make_unique<int>(9);
    EXPECT_EQ(*std::move(moved).value(), 9);

    result<int> const failed = error::end_of_stream;
    try {
        (void)failed.value();
        FAIL();
    } catch (std::system_error const& e) {
        EXPECT_EQ(e.code(), error::end_of_stream);
    }
    result<void>().value();
    EXPECT_THROW(result<void>(error::busy).value(), std::system_error);
}

TEST(result, members_of_the_value_are_reached_by_arrow) {
    result<std::string> r = std::string("abc");
    EXPECT_EQ(r->size(), 3u);
    r->push_back('d');
    EXPECT_EQ(std::as_const(r)->back(), 'd');
}

TEST(result, can_be_assigned_across_success_and_failure) {
    result<std::string> r = error::busy;
    r = std::string("now there is one");
    EXPECT_EQ(r.value(), "now there is one");
    result<std::string> const failed = errc::timed_out;
    r = failed;
    EXPECT_EQ(r.error(), errc::timed_out);
    result<void> v;
    v = error::busy;
    EXPECT_EQ(v.error(), error::busy);
    v = {};
    EXPECT_TRUE(v);
}

TEST(result, value_or_stands_in_for_a_missing_value) {
    EXPECT_EQ(half(4).value_or(0), 2);
    auto const failed = half(3);
    EXPECT_EQ(failed.value_or(-1), -1);
    EXPECT_EQ(result<std::unique_ptr<int>>(error::busy).value_or(nullptr), nullptr);
}

TEST(result, and_then_goes_on_with_the_value_and_keeps_an_error) {
    EXPECT_EQ(half(8).and_then(half).and_then(half), 1);
    EXPECT_EQ(half(6).and_then(half).error(), errc::argument_out_of_domain);
    auto const start = half(8);
    EXPECT_EQ(start.and_then([](int const& n) { return result<long>(n + 1L); }), 5L);
    EXPECT_EQ(result<void>().and_then([] { return half(2); }), 1);
    EXPECT_TRUE(half(2).and_then([](int) { return result<void>(); }));
    EXPECT_EQ(result<void>(error::busy).and_then([] { return half(2); }).error(), error::busy);
}

TEST(result, transform_maps_the_value_and_keeps_an_error) {
    auto const text = [](int n) { return std::to_string(n); };
    EXPECT_EQ(half(8).transform(text), std::string("4"));
    EXPECT_FALSE(half(7).transform(text));
    int seen = 0;
    result<void> const done = half(8).transform([&](int n) { seen = n; });
    EXPECT_TRUE(done);
    EXPECT_EQ(seen, 4);
    EXPECT_EQ(done.transform([] { return 5; }), 5);
    result<std::unique_ptr<int>> moved = std::make_unique<int>(3);
    EXPECT_EQ(std::move(moved).transform([](std::unique_ptr<int> p) { return *p; }), 3);
}

TEST(result, or_else_and_transform_error_see_only_errors) {
    auto const recover = [](std::error_code e) -> result<int> {
        if (e == errc::timed_out) {
            return 0;
        }
        return e;
    };
    EXPECT_EQ(half(4).or_else(recover), 2);
    EXPECT_EQ(result<int>(errc::timed_out).or_else(recover), 0);
    EXPECT_EQ(result<int>(error::busy).or_else(recover).error(), error::busy);
    auto const hide = [](std::error_code) { return error::limit_exceeded; };
    EXPECT_EQ(half(4).transform_error(hide), 2);
    EXPECT_EQ(half(3).transform_error(hide).error(), error::limit_exceeded);
    EXPECT_EQ(result<void>(error::busy).transform_error(hide).error(), error::limit_exceeded);
}

TEST(result, equals_the_same_value_or_the_same_error) {
    EXPECT_EQ(half(4), half(4));
    EXPECT_NE(half(4), half(6));
    EXPECT_NE(half(4), half(3));
    EXPECT_EQ(half(3), half(5));
    EXPECT_NE(result<int>(error::busy), half(3));
    EXPECT_EQ(half(4), 2);
    EXPECT_NE(half(3), 2);
    EXPECT_EQ(result<void>(), result<void>());
    EXPECT_NE(result<void>(error::busy), result<void>());
}

#ifndef NDEBUG
TEST(result_death_test, a_value_or_error_that_is_not_there_is_a_broken_invariant) {
    result<int> const failed = error::busy;
    EXPECT_DEATH((void)*failed, "broken invariant");
    EXPECT_DEATH((void)half(4).error(), "broken invariant");
    EXPECT_DEATH((void)result<int>(std::error_code()).has_value(), "broken invariant");
}
#endif

}  // namespace
