// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/error.hpp>

#include <plumb/base/throw_error.hpp>

#include <cerrno>
#include <set>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

namespace {

using plumb::error;

constexpr error all[]{error::end_of_stream, error::limit_exceeded,  error::busy,
                      error::parked_bytes,  error::already_started, error::not_an_address,
                      error::zero_in_path,  error::misaligned,      error::file_shrank,
                      error::map_fault,     error::wrong_kind};

// A code made before main, from a category that has to be there by then.
std::error_code const made_early = error::busy;

TEST(error, becomes_a_code_of_plumbs_own_category) {
    std::error_code const code = error::end_of_stream;
    EXPECT_TRUE(code);
    EXPECT_STREQ(code.category().name(), "plumb");
    EXPECT_EQ(code, error::end_of_stream);
    EXPECT_NE(code, error::busy);
    EXPECT_NE(code, std::make_error_code(std::errc::operation_not_permitted));
}

TEST(error, each_has_a_message_of_its_own) {
    std::set<std::string> messages{plumb::plumb_category().message(0)};
    for (error e : all) {
        EXPECT_TRUE(messages.insert(make_error_code(e).message()).second);
    }
    EXPECT_EQ(plumb::plumb_category().message(12345), "unknown error");
}

TEST(error, compares_equal_to_the_posix_condition_where_there_is_one) {
    EXPECT_EQ(make_error_code(error::busy), std::errc::device_or_resource_busy);
    EXPECT_EQ(make_error_code(error::not_an_address), std::errc::invalid_argument);
    EXPECT_EQ(make_error_code(error::zero_in_path), std::errc::invalid_argument);
    EXPECT_EQ(make_error_code(error::misaligned), std::errc::invalid_argument);
    EXPECT_EQ(make_error_code(error::wrong_kind), std::errc::invalid_argument);
    EXPECT_EQ(make_error_code(error::map_fault), std::errc::io_error);
    EXPECT_NE(make_error_code(error::end_of_stream), std::errc::invalid_argument);
}

TEST(error, category_is_usable_before_main) { EXPECT_EQ(made_early, error::busy); }

TEST(error, from_system_is_what_the_system_calls_it) {
    EXPECT_EQ(plumb::error_from_system(ETIMEDOUT), std::errc::timed_out);
    EXPECT_EQ(plumb::error_from_system(ECANCELED), std::errc::operation_canceled);
    EXPECT_EQ(plumb::error_from_system(EIO).category(), std::system_category());
}

TEST(throw_error, throws_the_code_and_what_was_being_done) {
    try {
        plumb::throw_error(error::limit_exceeded, "reading a line");
        FAIL();
    } catch (std::system_error const& e) {
        EXPECT_EQ(e.code(), error::limit_exceeded);
        EXPECT_TRUE(std::string(e.what()).starts_with("reading a line: "));
    }
    EXPECT_THROW(plumb::throw_error(error::busy), std::system_error);
}

}  // namespace
