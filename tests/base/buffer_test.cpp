// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/buffer.hpp>

#include <array>
#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sys/uio.h>

#include <gtest/gtest.h>

namespace {

using namespace plumb;

static_assert(std::convertible_to<std::string&, buffer>);
static_assert(std::convertible_to<std::vector<std::byte>&, buffer>);
static_assert(std::convertible_to<std::array<unsigned char, 4>&, buffer>);
static_assert(std::convertible_to<char (&)[4], buffer>);
static_assert(std::convertible_to<std::span<std::byte>, buffer>);
static_assert(std::convertible_to<buffer, std::span<std::byte>>);
static_assert(std::convertible_to<buffer, const_buffer>);
static_assert(std::convertible_to<std::string const&, const_buffer>);
static_assert(std::convertible_to<std::string_view, const_buffer>);
static_assert(std::convertible_to<std::span<std::byte const>, const_buffer>);
static_assert(std::convertible_to<const_buffer, std::span<std::byte const>>);
static_assert(std::convertible_to<unsigned char const (&)[4], const_buffer>);

// What may not be written to, is about to die, or isn't bytes.
static_assert(!std::convertible_to<std::string const&, buffer>);
static_assert(!std::convertible_to<std::string_view, buffer>);
static_assert(!std::convertible_to<std::string, buffer>);
static_assert(!std::convertible_to<const_buffer, buffer>);
static_assert(!std::convertible_to<std::vector<int>&, buffer>);
static_assert(!std::convertible_to<std::vector<buffer>&, buffer>);
static_assert(!std::convertible_to<bool (&)[4], buffer>);
static_assert(!std::convertible_to<std::span<std::byte const>, buffer>);
// A literal would write its null.
static_assert(!std::convertible_to<decltype(("abc")), const_buffer>);
static_assert(!std::convertible_to<char const*, const_buffer>);
// An array of buffers isn't bytes.
static_assert(!std::constructible_from<buffer, buffer*, std::size_t>);
static_assert(!std::constructible_from<const_buffer, buffer*, std::size_t>);

TEST(buffer, has_the_bytes_of_an_iovec) {
    char data[8];
    buffer const b(data, 5);
    const_buffer const c = b;
    iovec const expected{data, 5};
    EXPECT_EQ(std::memcmp(&b, &expected, sizeof(expected)), 0);
    EXPECT_EQ(std::memcmp(&c, &expected, sizeof(expected)), 0);
}

TEST(buffer, covers_what_it_was_made_from) {
    std::string text = "hello";
    buffer const whole = text;
    EXPECT_EQ(static_cast<void*>(whole.data()), text.data());
    EXPECT_EQ(whole.size(), 5u);
    EXPECT_EQ(std::span<std::byte>(whole).size(), 5u);
    std::memcpy(whole.data(), "J", 1);
    EXPECT_EQ(text, "Jello");
    EXPECT_EQ(const_buffer(std::string_view("abc")).size(), 3u);
    EXPECT_EQ(whole.end() - whole.begin(), 5);
    EXPECT_TRUE(buffer().empty());
    EXPECT_TRUE(buffer(nullptr, 0).empty());
}

TEST(buffer, parts_never_leave_it) {
    char data[10];
    buffer const b = data;
    EXPECT_EQ(b.first(3).size(), 3u);
    EXPECT_EQ(b.first(3).data(), b.data());
    EXPECT_EQ(b.first(11).size(), 10u);
    EXPECT_EQ(b.skip(3).size(), 7u);
    EXPECT_EQ(b.skip(3).data(), b.data() + 3);
    EXPECT_EQ(b.skip(11).size(), 0u);
    EXPECT_EQ(b.skip(11).data(), b.end());

    const_buffer left = b;
    left += 4;
    left += 4;
    EXPECT_EQ(left.data(), b.data() + 8);
    EXPECT_EQ(left.size(), 2u);
    left += 100;
    EXPECT_TRUE(left.empty());
}

}  // namespace
