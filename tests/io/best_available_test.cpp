// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_multiplexer.hpp>

#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"
#include "support/refusal.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include <sys/syscall.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class best_available : public ::testing::Test {
protected:
    best_available() { force(nullptr); }
    ~best_available() override { force(nullptr); }
    static void force(char const* name) {
        if (name != nullptr) {
            ::setenv("PLUMB_MULTIPLEXER", name, 1);
        } else {
            ::unsetenv("PLUMB_MULTIPLEXER");
        }
    }
    static bool has_ring() { return io_multiplexer::make(multiplexer_kind::io_uring).has_value(); }
};

TEST_F(best_available, takes_the_ring_where_it_works_else_epoll) {
    auto const best = io_multiplexer::best_available(1);
    ASSERT_TRUE(best) << best.error().message();
    EXPECT_EQ((*best)->kind(), has_ring() ? multiplexer_kind::io_uring : multiplexer_kind::epoll);
}

TEST_F(best_available, the_environment_forces_epoll) {
    force("epoll");
    auto const forced = io_multiplexer::best_available(1);
    ASSERT_TRUE(forced);
    EXPECT_EQ((*forced)->kind(), multiplexer_kind::epoll);
}

TEST_F(best_available, the_environment_forces_the_ring) {
    if (!has_ring()) {
        GTEST_SKIP() << "this system refuses io_uring";
    }
    force("io_uring");
    auto const forced = io_multiplexer::best_available(1);
    ASSERT_TRUE(forced);
    EXPECT_EQ((*forced)->kind(), multiplexer_kind::io_uring);
}

TEST_F(best_available, an_empty_name_forces_nothing) {
    force("");
    EXPECT_TRUE(io_multiplexer::best_available(1));
}

TEST_F(best_available, an_unknown_name_is_an_error) {
    for (char const* const name : {"kqueue", "EPOLL", "epoll ", "sim"}) {
        force(name);
        EXPECT_EQ(io_multiplexer::best_available(1).error(), std::errc::invalid_argument) << name;
    }
}

TEST_F(best_available, the_simulated_one_is_not_made_for_the_real_system) {
    EXPECT_EQ(io_multiplexer::make(multiplexer_kind::sim).error(), std::errc::not_supported);
}

TEST_F(best_available, kinds_have_names) {
    EXPECT_EQ(to_string(multiplexer_kind::epoll), "epoll");
    EXPECT_EQ(to_string(multiplexer_kind::io_uring), "io_uring");
    EXPECT_EQ(to_string(multiplexer_kind::sim), "sim");
}

// In a child, whose kernel refuses the ring.
[[noreturn]] void exit_with(bool passed) { ::_exit(passed ? 0 : 1); }

class refused_ring : public best_available, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(errors, refused_ring, ::testing::Values(EPERM, ENOSYS, ENOMEM));

TEST_P(refused_ring, falls_back_to_epoll) {
    EXPECT_EXIT(
        {
            refuse_system_call(SYS_io_uring_setup, GetParam());
            auto const best = io_multiplexer::best_available(1);
            exit_with(best && (*best)->kind() == multiplexer_kind::epoll);
        },
        ::testing::ExitedWithCode(0), "");
}

TEST_P(refused_ring, is_an_error_where_the_ring_is_forced) {
    EXPECT_EXIT(
        {
            refuse_system_call(SYS_io_uring_setup, GetParam());
            force("io_uring");
            auto const forced = io_multiplexer::best_available(1);
            exit_with(!forced &&
                      forced.error() == std::error_code(GetParam(), std::system_category()) &&
                      !io_multiplexer::make(multiplexer_kind::io_uring));
        },
        ::testing::ExitedWithCode(0), "");
}

TEST_F(best_available, takes_epoll_where_the_ring_cannot_say_what_it_knows) {
    EXPECT_EXIT(
        {
            refuse_system_call(SYS_io_uring_register, EINVAL);
            auto const best = io_multiplexer::best_available(1);
            exit_with(best && (*best)->kind() == multiplexer_kind::epoll &&
                      io_multiplexer::make(multiplexer_kind::io_uring).error() ==
                          std::errc::function_not_supported);
        },
        ::testing::ExitedWithCode(0), "");
}

class refused_nanoseconds : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(errors, refused_nanoseconds, ::testing::Values(EPERM, ENOSYS));

TEST_P(refused_nanoseconds, leave_timers_that_end_on_time_and_do_not_spin) {
    EXPECT_EXIT(
        {
            refuse_system_call(SYS_epoll_pwait2, GetParam());
            auto m = std::move(*io_multiplexer::make(multiplexer_kind::epoll));
            auto const before = std::chrono::steady_clock::now();
            record_of<async_wait> waited;
            auto operation = connect(async_wait(*m, 2500us), recorder(waited));
            (void)operation.start();
            while (!waited.done()) {
                if (m->run().value() < 0) {
                    break;
                }
            }
            exit_with(waited.done() && std::chrono::steady_clock::now() - before >= 2500us &&
                      m->counters().turns < 10);
        },
        ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace plumb::test
