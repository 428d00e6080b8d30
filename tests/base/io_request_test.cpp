// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/io_request.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace plumb;
using namespace std::string_view_literals;

/// As a function that reads or writes would take it.
io_request<buffers> read(io_request<buffers> r) { return r; }
io_request<const_buffers> write(io_request<const_buffers> r) { return r; }

constexpr auto no_offset = io_request<buffers>::no_offset;

TEST(io_request, is_made_from_whatever_makes_buffers) {
    char data[8];
    std::string text = "hello";
    std::vector<std::byte> bytes(3);
    EXPECT_EQ(read(data).buffers.bytes(), 8u);
    EXPECT_EQ(read(text).buffers.bytes(), 5u);
    EXPECT_EQ(read(std::span(bytes)).buffers.bytes(), 3u);
    EXPECT_EQ(read(buffer(data, 4)).buffers.bytes(), 4u);
    EXPECT_EQ(read({buffer(data, 4)}).buffers.bytes(), 4u);
    EXPECT_EQ(read(buffers(data)).buffers.bytes(), 8u);
    EXPECT_EQ(read({}).buffers.bytes(), 0u);
    EXPECT_EQ(write("hello"sv).buffers.bytes(), 5u);
    EXPECT_EQ(write(text).buffers.bytes(), 5u);
    EXPECT_EQ(write(buffers(text)).buffers.bytes(), 5u);
    EXPECT_EQ(write(text).offset, no_offset);
}

TEST(io_request, of_an_array_and_a_number_is_so_many_bytes_of_it) {
    char data[8];
    EXPECT_EQ(read({data, 5}).buffers.bytes(), 5u);
    EXPECT_EQ(read({data, sizeof(data)}).buffers.bytes(), 8u);
    EXPECT_EQ(read({data, 5}).offset, no_offset);
    struct {
        int a, b;
    } header;
    EXPECT_EQ(read({&header, sizeof(header)}).buffers.bytes(), sizeof(header));
    EXPECT_EQ(write({static_cast<void const*>(data), 3}).buffers.bytes(), 3u);
}

TEST(io_request, takes_the_offset_beside_a_list) {
    char data[8];
    buffer const parts[]{{data, 2}, {data + 2, 6}};
    std::vector<buffer> const list(parts, parts + 2);
    EXPECT_EQ(read({buffer(data), 7}).offset, 7u);
    EXPECT_EQ(read({std::span(data), 7}).offset, 7u);
    EXPECT_EQ(read({{buffer(data)}, 7}).offset, 7u);
    EXPECT_EQ(read({{data, 5}, 7}).offset, 7u);
    EXPECT_EQ(read({{data, 5}, 7}).buffers.bytes(), 5u);
    EXPECT_EQ(read({parts, 7}).offset, 7u);
    EXPECT_EQ(read({parts, 1}).buffers.size(), 2u);
    EXPECT_EQ(read({list, 7}).offset, 7u);
    EXPECT_EQ(read(list).buffers.size(), 2u);
    EXPECT_EQ(write({"abc"sv, 0}).offset, 0u);
    EXPECT_EQ(write({parts, 3}).buffers.bytes(), 8u);
}

}  // namespace
