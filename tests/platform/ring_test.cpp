// SPDX-License-Identifier: Apache-2.0
#include "platform/linux/ring.hpp"

#include <plumb/handle/pipe_handle.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace plumb::platform {
namespace {

class ring_test : public ::testing::TestWithParam<bool> {
protected:
    ring r;

    void SetUp() override {
        if (auto const opened = r.open(GetParam()); opened < 0) {
            GTEST_SKIP() << "no ring here: " << error_of(opened).message();
        }
        ASSERT_EQ(r.enable(), 0);
    }
    bool submit_nop(std::uint64_t user_data) {
        io_uring_sqe* const entry = r.next();
        if (entry != nullptr) {
            io_uring_prep_nop(entry);
            entry->user_data = user_data;
        }
        return entry != nullptr;
    }
};

INSTANTIATE_TEST_SUITE_P(threads, ring_test, ::testing::Bool(),
                         [](auto const& p) { return p.param ? "any" : "one"; });

TEST_P(ring_test, has_room_again_once_the_kernel_took_the_entries) {
    for (std::uint64_t i = 0; i < ring::submission_entries; ++i) {
        ASSERT_TRUE(submit_nop(i));
    }
    EXPECT_FALSE(submit_nop(0));
    EXPECT_TRUE(r.must_enter());
    ASSERT_EQ(r.enter(0, 0), 0);
    EXPECT_TRUE(submit_nop(ring::submission_entries));
    ASSERT_EQ(r.enter(1, forever), 0);
    for (std::uint64_t i = 0; i <= ring::submission_entries; ++i) {
        ASSERT_FALSE(r.empty());
        EXPECT_EQ(r.pop().user_data, i);
    }
    EXPECT_TRUE(r.empty());
    EXPECT_FALSE(r.must_enter());
}

TEST_P(ring_test, completions_beyond_its_queue_are_not_lost) {
    constexpr std::uint64_t many = ring::completion_entries + 3 * ring::submission_entries;
    for (std::uint64_t i = 0; i < many; ++i) {
        while (!submit_nop(i)) {
            ASSERT_EQ(r.enter(0, 0), 0);
        }
    }
    ASSERT_EQ(r.enter(0, 0), 0);
    EXPECT_TRUE(r.must_enter());
    for (std::uint64_t i = 0; i < many; ++i) {
        if (r.empty()) {
            ASSERT_EQ(r.enter(1, forever), 0);
        }
        ASSERT_EQ(r.pop().user_data, i);
    }
    EXPECT_TRUE(r.empty());
}

TEST_P(ring_test, what_the_kernel_had_not_taken_is_not_done_to_the_next_file_of_a_number) {
    auto ends = pipe_handle::anonymous_pipe().value();
    ASSERT_TRUE(ends.writer.write(const_buffer("text", 4u)));
    auto const file = static_cast<int>(ends.reader.native());
    char got[4] = {};
    io_uring_sqe* const entry = r.next();
    io_uring_prep_read(entry, file, got, sizeof(got), 0);
    r.disown(file);
    ASSERT_EQ(r.enter(1, forever), 0);
    EXPECT_EQ(r.pop().result, -EBADF);
    EXPECT_EQ(got[0], 0);
}

TEST_P(ring_test, a_wait_ends_at_its_time_out) {
    auto const before = os().steady_now();
    EXPECT_EQ(r.enter(1, 2'000'000), 0);
    EXPECT_GE(os().steady_now() - before, 2'000'000);
    EXPECT_TRUE(r.empty());
}

TEST_P(ring_test, may_be_prepared_on_another_thread_than_the_one_that_enters_it) {
    ring other;
    ASSERT_EQ(other.open(GetParam()), 0);
    io_uring_prep_nop(other.next());
    std::thread([&] {
        ASSERT_EQ(other.enable(), 0);
        EXPECT_EQ(other.enter(1, forever), 0);
        EXPECT_FALSE(other.empty());
    }).join();
}

}  // namespace
}  // namespace plumb::platform
