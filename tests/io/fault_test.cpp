// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_multiplexer.hpp>

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// System calls that fail, one at a time: on the backend whose every call goes through the seam.
class fault_test : public ::testing::Test {
protected:
    fault_test() : seam_(platform::native_seam()) { platform::replace_seam(&seam_); }
    ~fault_test() override { platform::replace_seam(nullptr); }

    [[nodiscard]] platform::seam& faulty() noexcept { return seam_; }
    static std::unique_ptr<io_multiplexer> make() {
        return std::move(io_multiplexer::make(multiplexer_kind::epoll).value());
    }
    static stream_socket_handle::pair sockets(io_multiplexer& m) {
        auto pair = stream_socket_handle::socket_pair().value();
        pair.first.set_multiplexer(m);
        pair.second.set_multiplexer(m);
        return pair;
    }
    template <class Operation>
    static bool drive(io_multiplexer& m, Operation const& operation) {
        while (!operation.completed()) {
            if (auto const done = m.try_run_for(patience); !done || *done <= 0) {
                return operation.completed();
            }
        }
        return true;
    }

    std::array<std::byte, 16> memory{};
    record_of<async_read> read;

private:
    platform::seam seam_;
};

using platform::failed_with;
using platform::outcome;

TEST_F(fault_test, a_poller_that_cannot_be_opened_is_an_error_of_make) {
    faulty().open_poller = []() noexcept -> outcome {
        return failed_with(std::errc::too_many_files_open);
    };
    EXPECT_EQ(io_multiplexer::make(multiplexer_kind::epoll).error(),
              std::errc::too_many_files_open);
}

TEST_F(fault_test, a_poller_that_takes_no_handle_is_an_error_of_the_operation) {
    auto const m = make();
    auto pair = sockets(*m);
    faulty().poller_add = [](native_handle, native_handle, std::uint64_t) noexcept -> outcome {
        return failed_with(std::errc::no_space_on_device);
    };
    auto operation = connect(async_read(pair.first, buffer(memory)), recorder(read));
    EXPECT_EQ(operation.start(), io_status::completed);
    ASSERT_TRUE(drive(*m, operation));
    EXPECT_EQ(read.value->error(), std::errc::no_space_on_device);

    // It is asked again the next time.
    faulty().poller_add = platform::native_seam().poller_add;
    read = {};
    operation.reset();
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(pair.second.write(bytes_of("x"), patience));
    ASSERT_TRUE(drive(*m, operation));
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_F(fault_test, a_wait_that_fails_is_an_error_of_run_and_loses_nothing) {
    auto const m = make();
    auto pair = sockets(*m);
    auto operation = connect(async_read(pair.first, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    faulty().poller_wait = [](native_handle, platform::poll_event*, std::size_t,
                              std::int64_t) noexcept -> outcome {
        return failed_with(std::errc::not_enough_memory);
    };
    EXPECT_EQ(m->run().error(), std::errc::not_enough_memory);
    EXPECT_EQ(m->complete_io().error(), std::errc::not_enough_memory);
    faulty().poller_wait = platform::native_seam().poller_wait;
    ASSERT_TRUE(pair.second.write(bytes_of("x"), patience));
    ASSERT_TRUE(drive(*m, operation));
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_F(fault_test, a_read_or_write_that_fails_tells_the_error) {
    auto const m = make();
    auto pair = sockets(*m);
    faulty().read = [](native_handle, handle_kind, buffer const*, std::size_t) noexcept -> outcome {
        return failed_with(std::errc::io_error);
    };
    faulty().read_waiting = faulty().read;
    faulty().write = [](native_handle, handle_kind, const_buffer const*,
                        std::size_t) noexcept -> outcome {
        return failed_with(std::errc::no_buffer_space);
    };
    auto operation = connect(async_read(pair.first, buffer(memory)), recorder(read));
    (void)operation.start();
    ASSERT_TRUE(drive(*m, operation));
    EXPECT_EQ(read.value->error(), std::errc::io_error);
    record_of<async_write> written;
    auto write = connect(async_write(pair.first, const_buffer(memory)), recorder(written));
    (void)write.start();
    ASSERT_TRUE(drive(*m, write));
    EXPECT_EQ(written.value->error(), std::errc::no_buffer_space);
    EXPECT_EQ(pair.first.read(buffer(memory)).error(), std::errc::io_error);
    EXPECT_EQ(pair.first.write(const_buffer(memory)).error(), std::errc::no_buffer_space);
}

TEST_F(fault_test, an_accept_that_fails_once_is_told_and_the_next_goes_on) {
    auto const m = make();
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    listener.set_multiplexer(*m);
    for (auto const passing :
         {std::errc::connection_aborted, std::errc::too_many_files_open_in_system,
          std::errc::no_buffer_space, std::errc::not_enough_memory}) {
        static std::errc failure;
        failure = passing;
        record_of<async_accept> accepted;
        auto operation = connect(async_accept(listener), recorder(accepted));
        ASSERT_EQ(operation.start(), io_status::pending);
        faulty().accept = [](native_handle) noexcept -> outcome { return failed_with(failure); };
        auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        client.connect(listener.local().value(), patience).value();
        ASSERT_TRUE(drive(*m, operation));
        EXPECT_EQ(accepted.value->error(), passing);
        EXPECT_EQ(listener.accept(patience).error(), passing);

        faulty().accept = platform::native_seam().accept;
        accepted = {};
        operation.reset();
        (void)operation.start();
        ASSERT_TRUE(drive(*m, operation));
        EXPECT_TRUE(*accepted.value);
    }
}

TEST_F(fault_test, a_close_that_fails_is_told_and_the_handle_is_closed_all_the_same) {
    auto pair = stream_socket_handle::socket_pair().value();
    faulty().close = [](native_handle h) noexcept -> outcome {
        (void)platform::native_seam().close(h);
        return failed_with(std::errc::io_error);
    };
    EXPECT_EQ(pair.first.close().error(), std::errc::io_error);
    EXPECT_FALSE(pair.first.is_open());
    EXPECT_TRUE(pair.first.close());
}

TEST_F(fault_test, a_wait_for_readiness_that_fails_ends_blocking_io) {
    auto pair = stream_socket_handle::socket_pair().value();
    faulty().await_ready = [](native_handle, std::uint32_t, std::int64_t) noexcept -> outcome {
        return failed_with(std::errc::not_enough_memory);
    };
    EXPECT_EQ(pair.first.read(buffer(memory), patience).error(), std::errc::not_enough_memory);
}

TEST_F(fault_test, wakes_without_reason_disturb_nobody) {
    auto const m = make();
    auto pair = sockets(*m);
    auto operation = connect(async_read(pair.first, buffer(memory), 30ms), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    static int waits;
    waits = 0;
    faulty().poller_wait = [](native_handle p, platform::poll_event* e, std::size_t n,
                              std::int64_t t) noexcept -> outcome {
        // As after an interruption.
        return ++waits % 2 != 0 ? 0 : platform::native_seam().poller_wait(p, e, n, t);
    };
    ASSERT_TRUE(drive(*m, operation));
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
}

TEST_F(fault_test, readiness_that_is_none_is_waited_for_again) {
    auto const m = make();
    auto pair = sockets(*m);
    auto operation = connect(async_read(pair.first, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    static int lies;
    lies = 3;
    faulty().read = [](native_handle h, handle_kind k, buffer const* b,
                       std::size_t n) noexcept -> outcome {
        return lies-- > 0 ? failed_with(std::errc::resource_unavailable_try_again)
                          : platform::native_seam().read(h, k, b, n);
    };
    for (int i = 0; i < 5 && !operation.completed(); ++i) {
        // Each write is a new event.
        ASSERT_TRUE(pair.second.write(bytes_of("x"), patience));
        (void)m->try_run();
    }
    EXPECT_TRUE(operation.completed());
}

TEST_F(fault_test, what_only_ends_waits_uses_up_no_bounded_turn) {
    auto const m = make();
    auto pair = sockets(*m);
    auto operation = connect(async_read(pair.first, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(pair.second.write(bytes_of("x"), patience));
    static bool woken;
    woken = true;
    faulty().poller_wait = [](native_handle p, platform::poll_event* e, std::size_t n,
                              std::int64_t t) noexcept -> outcome {
        if (!std::exchange(woken, false)) {
            return platform::native_seam().poller_wait(p, e, n, t);
        }
        e[0] = {platform::no_key, platform::readable};
        return 1;
    };
    EXPECT_EQ(m->complete_io(1).value(), 1);
    EXPECT_TRUE(read.done());
}

// A wall clock that jumps, by a system whose clock the test sets.
TEST_F(fault_test, an_absolute_system_time_follows_the_clock_where_it_jumps_before_the_wait) {
    static std::int64_t shift;
    shift = 0;
    faulty().system_now = []() noexcept { return platform::native_seam().system_now() + shift; };
    auto const m = make();
    record_of<async_wait> waited;
    auto const hour_later = std::chrono::system_clock::now() + 1h;
    auto operation = connect(async_wait(*m, hour_later), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_LT(m->try_run().value(), 0);
    shift = std::chrono::nanoseconds(1h).count();
    EXPECT_EQ(m->try_run().value(), 1);
    EXPECT_TRUE(waited.done());

    // Backwards.
    waited = {};
    auto const soon = std::chrono::system_clock::now() + 1h + 10ms;
    auto later = connect(async_wait(*m, soon), recorder(waited));
    ASSERT_EQ(later.start(), io_status::pending);
    shift = 0;
    EXPECT_LT(m->try_run_for(20ms).value(), 0);
    EXPECT_TRUE(waited.untold());
}

TEST_F(fault_test, an_absolute_system_time_follows_the_clock_where_it_jumps_during_the_wait) {
    static std::atomic<std::int64_t> shift;
    static native_handle watch[2];
    faulty().system_now = []() noexcept { return platform::native_seam().system_now() + shift; };
    faulty().open_clock_watch = []() noexcept -> outcome { return watch[0]; };
    for (auto const kind : {multiplexer_kind::epoll, multiplexer_kind::io_uring}) {
        shift = 0;
        ASSERT_GE(platform::os().open_pipe(watch), 0);
        auto const m = io_multiplexer::make(kind);
        if (!m) {
            GTEST_SKIP() << to_string(kind) << ": " << m.error().message();
        }
        record_of<async_wait> waited;
        auto const hour_later = std::chrono::system_clock::now() + 1h;
        auto operation = connect(async_wait(**m, hour_later), recorder(waited));
        ASSERT_EQ(operation.start(), io_status::pending);
        std::thread setter([] {
            std::this_thread::sleep_for(20ms);
            shift = std::chrono::nanoseconds(1h).count();
            const_buffer const byte("x", 1);
            EXPECT_EQ(platform::os().write(watch[1], handle_kind::pipe, &byte, 1), 1);
        });
        EXPECT_EQ((*m)->try_run_for(patience).value(), 1) << to_string(kind);
        setter.join();
        EXPECT_TRUE(waited.done());
        EXPECT_EQ(platform::os().close(watch[1]), 0);
    }
}

TEST_F(fault_test, where_the_clock_cannot_be_watched_times_are_waited_for_all_the_same) {
    faulty().open_clock_watch = []() noexcept -> outcome {
        return failed_with(std::errc::too_many_files_open);
    };
    auto const m = make();
    record_of<async_wait> waited;
    auto const soon = std::chrono::system_clock::now() + 5ms;
    auto operation = connect(async_wait(*m, soon), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(drive(*m, operation));
    EXPECT_TRUE(waited.done());
}

}  // namespace
}  // namespace plumb::test
