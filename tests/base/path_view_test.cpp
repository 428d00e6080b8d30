// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/path_view.hpp>

#include "support/allocations.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace plumb::test {
namespace {

using namespace std::literals;

TEST(path_view, views_whatever_holds_a_path) {
    std::string const text = "/var/log";
    std::filesystem::path const path = text;
    EXPECT_EQ(path_view("/var/log").bytes(), text);
    EXPECT_EQ(path_view(text).bytes().data(), text.data());
    EXPECT_EQ(path_view(std::string_view(text)).bytes().data(), text.data());
    EXPECT_EQ(path_view(path).bytes().data(), path.native().data());
    EXPECT_TRUE(path_view().empty());
    static_assert(!std::is_constructible_v<path_view, std::nullptr_t>);
    static_assert(std::is_trivially_copyable_v<path_view>);
}

TEST(path_view, knows_whether_a_zero_follows) {
    std::string const text = "file";
    EXPECT_TRUE(path_view("file").is_zero_terminated());
    EXPECT_TRUE(path_view(text).is_zero_terminated());
    EXPECT_TRUE(path_view(std::filesystem::path(text)).is_zero_terminated());
    EXPECT_FALSE(path_view("file"sv).is_zero_terminated());
    EXPECT_FALSE(path_view().is_zero_terminated());
}

TEST(path_view, splits_at_the_last_slash) {
    EXPECT_EQ(path_view("a/b/c").parent(), "a/b/");
    EXPECT_EQ(path_view("a/b/c").leaf(), "c");
    EXPECT_EQ(path_view("c").parent(), "");
    EXPECT_EQ(path_view("c").leaf(), "c");
    EXPECT_EQ(path_view("/c").parent(), "/");
    EXPECT_EQ(path_view("a/").leaf(), "");
    EXPECT_EQ(path_view().leaf(), "");
    EXPECT_TRUE(path_view("a/b").leaf().is_zero_terminated()) << "the zero of the path is its own";
    EXPECT_FALSE(path_view("a/b").parent().is_zero_terminated());
}

TEST(path_view, compares_by_bytes) {
    EXPECT_EQ(path_view("a/b"), path_view("a/b"sv));
    EXPECT_NE(path_view("a/b"), path_view("a//b"));
    EXPECT_LT(path_view("a"), path_view("b"));
}

TEST(path_view, goes_to_the_system_uncopied_where_a_zero_follows) {
    std::string const text = "a/path";
    path_view::zero_terminated const same(text);
    EXPECT_EQ(same.get().value(), text.data());
    path_view::zero_terminated const copied(std::string_view(text).substr(0, 3));
    EXPECT_STREQ(copied.get().value(), "a/p");
    path_view::zero_terminated const empty{path_view()};
    EXPECT_STREQ(empty.get().value(), "");
}

TEST(path_view, a_zero_inside_is_an_error_and_no_shorter_path) {
    path_view::zero_terminated const copied("a\0b"sv);
    EXPECT_EQ(copied.get().error(), error::zero_in_path);
    path_view::zero_terminated const uncopied("a\0b"s);
    EXPECT_EQ(uncopied.get().error(), error::zero_in_path);
}

TEST(path_view, a_path_that_no_system_call_takes_is_too_long) {
    std::string const longest(4095, 'x');
    std::string const longer(4096, 'x');
    auto const before = heap_allocations();
    EXPECT_TRUE(path_view::zero_terminated(longest).get());
    EXPECT_TRUE(path_view::zero_terminated(std::string_view(longest)).get());
    EXPECT_EQ(path_view::zero_terminated(longer).get().error(), std::errc::filename_too_long);
    EXPECT_EQ(path_view::zero_terminated(std::string_view(longer)).get().error(),
              std::errc::filename_too_long);
    EXPECT_EQ(heap_allocations(), before);
}

}  // namespace
}  // namespace plumb::test
