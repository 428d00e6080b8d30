// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/buffers.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace plumb;

static_assert(sizeof(buffers) == 24 && sizeof(const_buffers) == 24);
static_assert(std::input_iterator<buffers::iterator>);
static_assert(std::convertible_to<std::vector<buffer>&, buffers>);
static_assert(std::convertible_to<std::vector<buffer> const&, const_buffers>);
static_assert(std::convertible_to<std::span<buffer const>, buffers>);
static_assert(std::convertible_to<buffer (&)[3], buffers>);
static_assert(std::convertible_to<buffers, const_buffers>);
static_assert(!std::convertible_to<const_buffers, buffers>);
static_assert(!std::convertible_to<std::vector<const_buffer>&, buffers>);
// They would dangle.
static_assert(!std::convertible_to<std::vector<buffer>, buffers>);
static_assert(!std::constructible_from<buffers, std::initializer_list<buffer>>);
static_assert(!std::constructible_from<buffers, std::initializer_list<buffer>&>);

/// As many buffers as there are sizes, one after the other in `data`.
template <class Buffer = buffer>
std::vector<Buffer> cut(std::string& data, std::initializer_list<std::size_t> sizes) {
    std::vector<Buffer> parts;
    std::size_t at = 0;
    for (auto const size : sizes) {
        parts.emplace_back(data.data() + at, size);
        at += size;
    }
    return parts;
}

std::string text_of(const_buffers list) {
    std::string text;
    for (const_buffer b : list) {
        text.append(reinterpret_cast<char const*>(b.data()), b.size());
    }
    return text;
}

std::vector<std::size_t> sizes_of(const_buffers list) {
    std::vector<std::size_t> sizes;
    for (const_buffer b : list) {
        sizes.push_back(b.size());
    }
    return sizes;
}

using sizes = std::vector<std::size_t>;

TEST(buffers, of_nothing_are_empty) {
    buffers const none;
    EXPECT_EQ(none.size(), 0u);
    EXPECT_EQ(none.bytes(), 0u);
    EXPECT_TRUE(none.empty());
    EXPECT_TRUE(none.begin() == none.end());
    EXPECT_EQ(none.native_count(), 1u);
    EXPECT_EQ(none.native_array()[0].size(), 0u);
    EXPECT_TRUE(buffers(std::span<buffer>()).empty());
    buffer const empty_ones[3];
    EXPECT_EQ(buffers(empty_ones).size(), 0u);
}

TEST(buffers, of_one_buffer_hold_it_themselves) {
    std::string data = "hello";
    buffers const one = data;
    EXPECT_EQ(one.size(), 1u);
    EXPECT_EQ(one.bytes(), 5u);
    EXPECT_EQ(static_cast<void const*>(one.native_array()), &one);
    EXPECT_EQ(one.native_count(), 1u);
    EXPECT_EQ(static_cast<void*>(one[0].data()), data.data());
    EXPECT_EQ(text_of(one), "hello");
    EXPECT_EQ(text_of(one.first(2)), "he");
    EXPECT_EQ(text_of(one.first(9)), "hello");
    EXPECT_TRUE(one.first(0).empty());

    auto const copy = one;
    EXPECT_EQ(static_cast<void const*>(copy.native_array()), &copy);
    EXPECT_EQ(text_of({data.data(), 3}), "hel");
}

TEST(buffers, of_several_view_the_callers_array) {
    std::string data = "aabbbbccc";
    auto const parts = cut(data, {2, 4, 3});
    buffers const list = parts;
    EXPECT_EQ(list.size(), 3u);
    EXPECT_EQ(list.bytes(), 9u);
    EXPECT_EQ(list.native_array(), parts.data());
    EXPECT_EQ(list.native_count(), 3u);
    EXPECT_EQ(list.trim_last(), 0u);
    EXPECT_EQ(text_of(list), data);
    EXPECT_EQ(sizes_of(list), (sizes{2, 4, 3}));
    EXPECT_EQ(list[1].data(), parts[1].data());
    EXPECT_EQ(list[2].size(), 3u);
    EXPECT_EQ(text_of(buffers(parts.data(), 2)), "aabbbb");
}

TEST(buffers, cut_anywhere_give_the_first_bytes_and_leave_the_array_alone) {
    std::string data = "aabbbbccc";
    auto const parts = cut(data, {2, 0, 4, 3, 0});
    buffers const list = parts;
    EXPECT_EQ(list.size(), 4u);
    for (std::size_t n = 0; n <= data.size() + 1; ++n) {
        buffers const start = list.first(n);
        auto const expected = data.substr(0, n);
        EXPECT_EQ(start.bytes(), expected.size());
        EXPECT_EQ(text_of(start), expected);
        EXPECT_EQ(sizes_of(start).size(), start.size());
        for (std::size_t i = 0; i < start.size(); ++i) {
            EXPECT_EQ(start[i].size(), sizes_of(start)[i]);
        }
        for (std::size_t m = 0; m <= n; ++m) {
            EXPECT_EQ(text_of(start.first(m)), data.substr(0, m));
        }
    }
    EXPECT_EQ(parts[2].size(), 4u);
    EXPECT_EQ(sizes_of(list.first(5)), (sizes{2, 0, 3}));
    EXPECT_EQ(list.first(5).trim_last(), 1u);
}

TEST(buffers, go_to_the_kernel_without_a_last_one_that_is_trimmed) {
    std::string data = "aabbbbccc";
    auto const parts = cut(data, {2, 4, 3});
    buffers const list = parts;
    for (std::size_t n = 1; n <= data.size(); ++n) {
        buffers const whole = list.first(n).untrimmed();
        EXPECT_GT(whole.bytes(), 0u) << n;
        EXPECT_LE(whole.bytes(), n);
        EXPECT_EQ(whole.trim_last(), 0u);
        std::size_t native_bytes = 0;
        for (std::size_t i = 0; i < whole.native_count(); ++i) {
            native_bytes += whole.native_array()[i].size();
        }
        EXPECT_EQ(native_bytes, whole.bytes());
    }
    EXPECT_EQ(list.first(1).untrimmed().bytes(), 1u);
    EXPECT_EQ(list.first(5).untrimmed().bytes(), 2u);
    EXPECT_EQ(list.first(6).untrimmed().bytes(), 6u);
    EXPECT_EQ(list.untrimmed().bytes(), 9u);
}

TEST(buffers, start_with_a_buffer_that_has_bytes) {
    std::string data = "aabb";
    auto const parts = cut(data, {0, 0, 2, 2, 0});
    buffers const list = parts;
    EXPECT_EQ(list.size(), 2u);
    EXPECT_EQ(list.native_array(), &parts[2]);
    EXPECT_EQ(text_of(list), "aabb");
    EXPECT_EQ(list.first(3).untrimmed().bytes(), 2u);
    auto const single = cut(data, {0, 3, 0});
    EXPECT_EQ(buffers(single).size(), 1u);
    EXPECT_EQ(text_of(single), "aab");
}

TEST(buffers, that_were_read_can_be_written) {
    std::string data = "aabb";
    auto const parts = cut(data, {2, 2});
    buffers const filled = buffers(parts).first(3);
    const_buffers const list = filled;
    EXPECT_EQ(text_of(list), "aab");
    EXPECT_EQ(list.size(), 2u);
    EXPECT_EQ(list.trim_last(), 1u);
    EXPECT_EQ(list[1].data(), parts[1].data());
    EXPECT_EQ(text_of(const_buffers(buffers(data))), "aabb");
}

TEST(buffers, iterators_outlive_their_list) {
    std::string data = "aabb";
    auto const parts = cut(data, {2, 2});
    auto i = buffers(parts).first(3).begin();
    auto const before = i++;
    EXPECT_FALSE(before == i);
    EXPECT_EQ((*before).size(), 2u);
    EXPECT_EQ((*i).size(), 1u);
    EXPECT_TRUE(++i == std::default_sentinel);
}

TEST(buffers, saturate_where_the_sizes_add_up_to_more_than_there_are_numbers) {
    char c;
    auto const most = std::numeric_limits<std::size_t>::max();
    const_buffer const huge[]{{&c, most}, {&c, most}};
    EXPECT_EQ(const_buffers(huge).bytes(), most);
}

#ifndef NDEBUG
TEST(buffers_death_test, past_the_end_is_a_broken_invariant) {
    char c;
    EXPECT_DEATH((void)buffers(&c, 1)[1], "broken invariant");
}
#endif

}  // namespace
