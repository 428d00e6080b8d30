// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/io_result.hpp>

#include <string>
#include <system_error>

#include <gtest/gtest.h>

namespace {

using namespace plumb;

static_assert(sizeof(io_result<buffers>) <= 40 && sizeof(io_result<const_buffers>) <= 40);

io_result<buffers> reads(std::string& into, std::size_t n) {
    if (n > into.size()) {
        return std::errc::timed_out;
    }
    return buffers(into).first(n);
}

TEST(io_result, tells_how_many_bytes_were_moved) {
    std::string data = "hello";
    auto const r = reads(data, 3);
    EXPECT_TRUE(r);
    EXPECT_EQ(r.bytes_transferred(), 3u);
    EXPECT_EQ(r->size(), 1u);
    EXPECT_EQ((*r)[0].size(), 3u);
    EXPECT_EQ(r.value().bytes(), 3u);
}

TEST(io_result, at_the_end_of_the_stream_is_success_with_0_bytes) {
    std::string data = "hello";
    EXPECT_TRUE(reads(data, 0));
    EXPECT_EQ(reads(data, 0).bytes_transferred(), 0u);
}

TEST(io_result, of_a_failure_moved_nothing_and_has_the_error) {
    std::string data;
    auto const r = reads(data, 3);
    EXPECT_FALSE(r);
    EXPECT_EQ(r.bytes_transferred(), 0u);
    EXPECT_EQ(r.error(), std::errc::timed_out);
    EXPECT_THROW((void)r.value(), std::system_error);
}

TEST(io_result, outlives_the_operation_and_is_a_result) {
    std::string data = "hello";
    io_result<buffers> last = error::busy;
    last = reads(data, 2);
    EXPECT_EQ(last.bytes_transferred(), 2u);
    result<buffers> const plain = last;
    EXPECT_EQ(plain->bytes(), 2u);
    EXPECT_EQ(io_result<buffers>(plain).bytes_transferred(), 2u);
    EXPECT_EQ(last.transform([](buffers const& b) { return b.bytes(); }), 2u);
    io_result<const_buffers> const written = const_buffers(*last);
    EXPECT_EQ(written.bytes_transferred(), 2u);
}

}  // namespace
