// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/pipe_handle.hpp>

#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/refusal.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class pipe_handle_test : public ::testing::Test {
protected:
    pipe_handle::ends pipe = pipe_handle::anonymous_pipe().value();
    std::array<std::byte, 64> memory{};
};

TEST_F(pipe_handle_test, a_default_one_is_closed) {
    pipe_handle h;
    EXPECT_FALSE(h.is_open());
    EXPECT_EQ(h.native(), no_native_handle);
    EXPECT_EQ(h.kind(), handle_kind::pipe);
    EXPECT_EQ(h.multiplexer(), nullptr);
    EXPECT_TRUE(h.close());
    EXPECT_EQ(h.read(buffer(memory)).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(h.write(bytes_of("x")).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(h.release().value(), no_native_handle);
}

TEST_F(pipe_handle_test, both_ends_are_close_on_exec) {
    for (auto const* const end : {&pipe.reader, &pipe.writer}) {
        EXPECT_NE(::fcntl(static_cast<int>(end->native()), F_GETFD) & FD_CLOEXEC, 0);
    }
}

TEST_F(pipe_handle_test, bytes_come_out_as_they_went_in) {
    EXPECT_EQ(pipe.writer.write(bytes_of("hello")).bytes_transferred(), 5u);
    auto const r = pipe.reader.read(buffer(memory));
    EXPECT_EQ(text_of(r), "hello");
    EXPECT_EQ((*r)[0].data(), memory.data());
}

TEST_F(pipe_handle_test, several_buffers_are_written_and_filled_in_order) {
    std::string const a = "one ";
    std::string const b = "two";
    std::array<const_buffer, 2> const from{bytes_of(a), bytes_of(b)};
    EXPECT_EQ(pipe.writer.write(const_buffers(from)).bytes_transferred(), 7u);
    std::array<std::byte, 2> first;
    std::array<std::byte, 64> second;
    std::array<buffer, 2> const into{buffer(first), buffer(second)};
    EXPECT_EQ(text_of(pipe.reader.read(buffers(into))), "one two");
}

TEST_F(pipe_handle_test, a_trimmed_list_is_not_exceeded) {
    std::string const a = "abc";
    std::string const b = "defg";
    std::array<const_buffer, 2> const from{bytes_of(a), bytes_of(b)};
    auto const moved = pipe.writer.write(const_buffers(from).first(5)).bytes_transferred();
    EXPECT_GE(moved, 1u);
    EXPECT_LE(moved, 5u);
    ASSERT_TRUE(pipe.writer.close());
    EXPECT_EQ(text_of(pipe.reader.read(buffer(memory))), std::string("abcdefg", moved));
}

TEST_F(pipe_handle_test, the_end_is_success_with_no_bytes_again_and_again) {
    ASSERT_TRUE(pipe.writer.write(bytes_of("x")));
    ASSERT_TRUE(pipe.writer.close());
    EXPECT_EQ(text_of(pipe.reader.read(buffer(memory))), "x");
    for (int i = 0; i < 3; ++i) {
        auto const end = pipe.reader.read(buffer(memory), 1h);
        EXPECT_TRUE(end);
        EXPECT_EQ(end.bytes_transferred(), 0u);
    }
}

TEST_F(pipe_handle_test, an_empty_request_returns_at_once) {
    EXPECT_TRUE(pipe.reader.read(buffer()));
    EXPECT_TRUE(pipe.writer.write(const_buffer()));
    ASSERT_TRUE(pipe.reader.close());
    EXPECT_TRUE(pipe.writer.write(const_buffer()));
}

TEST_F(pipe_handle_test, a_pipe_without_reader_is_an_error_and_no_signal) {
    // The signal's default would end this process.
    std::signal(SIGPIPE, SIG_DFL);
    ASSERT_TRUE(pipe.reader.close());
    EXPECT_EQ(pipe.writer.write(bytes_of("x")).error(), std::errc::broken_pipe);
    EXPECT_EQ(pipe.writer.write(bytes_of("x"), 1h).error(), std::errc::broken_pipe);
}

TEST_F(pipe_handle_test, an_older_kernel_raises_no_signal_either) {
    EXPECT_EXIT(
        {
            constexpr std::uint32_t no_signal_flag = 0x100;
            std::signal(SIGPIPE, SIG_DFL);
            refuse_system_call(SYS_pwritev2, EOPNOTSUPP, no_signal_flag);
            auto own = pipe_handle::anonymous_pipe().value();
            bool passed = own.writer.write(bytes_of("x")).bytes_transferred() == 1;
            (void)own.reader.close();
            passed = passed && own.writer.write(bytes_of("x")).error() == std::errc::broken_pipe;
            // A signal of somebody else that waits is left alone, and the mask is as before.
            sigset_t set;
            sigset_t now;
            sigemptyset(&set);
            sigaddset(&set, SIGPIPE);
            ::pthread_sigmask(SIG_BLOCK, nullptr, &now);
            passed = passed && !sigismember(&now, SIGPIPE);
            ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
            ::raise(SIGPIPE);
            passed = passed && own.writer.write(bytes_of("x")).error() == std::errc::broken_pipe;
            sigpending(&now);
            passed = passed && sigismember(&now, SIGPIPE) == 1;
            ::_exit(passed ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
}

// Deadlines.

TEST_F(pipe_handle_test, trying_never_waits) {
    auto const before = clock::now();
    EXPECT_EQ(pipe.reader.try_read(buffer(memory)).error(), std::errc::timed_out);
    EXPECT_EQ(pipe.reader.read(buffer(memory), 0s).error(), std::errc::timed_out);
    EXPECT_EQ(pipe.reader.read(buffer(memory), clock::now() - 1h).error(), std::errc::timed_out);
    EXPECT_EQ(pipe.reader.read(buffer(memory), -1h).error(), std::errc::timed_out);
    std::string const block(4096, 'x');
    while (pipe.writer.try_write(bytes_of(block))) {
    }
    EXPECT_EQ(pipe.writer.try_write(bytes_of("x")).error(), std::errc::timed_out);
    EXPECT_LT(clock::now() - before, 1s);
    EXPECT_EQ(text_of(pipe.reader.try_read(buffer(memory))), std::string(64, 'x'));
}

TEST_F(pipe_handle_test, waits_until_its_deadline_and_not_less) {
    for (int form = 0; form < 4; ++form) {
        auto const before = clock::now();
        auto const r =
            form == 0   ? pipe.reader.read(buffer(memory), 5ms)
            : form == 1 ? pipe.reader.try_read_for(buffer(memory), 5ms)
            : form == 2 ? pipe.reader.try_read_until(buffer(memory), before + 5ms)
                        : pipe.reader.read(buffer(memory), std::chrono::system_clock::now() + 5ms);
        EXPECT_EQ(r.error(), std::errc::timed_out);
        EXPECT_GE(clock::now() - before, form == 3 ? 4ms : 5ms);
    }
}

TEST_F(pipe_handle_test, a_full_pipe_waits_until_its_deadline) {
    std::string const block(4096, 'x');
    while (pipe.writer.try_write(bytes_of(block))) {
    }
    auto const before = clock::now();
    EXPECT_EQ(pipe.writer.try_write_for(bytes_of(block), 5ms).error(), std::errc::timed_out);
    EXPECT_EQ(pipe.writer.try_write_until(bytes_of(block), clock::now() + 5ms).error(),
              std::errc::timed_out);
    EXPECT_GE(clock::now() - before, 10ms);
}

TEST_F(pipe_handle_test, waits_for_another_thread) {
    std::thread other([&] { EXPECT_TRUE(pipe.writer.write(bytes_of("late"))); });
    EXPECT_EQ(text_of(pipe.reader.read(buffer(memory))), "late");
    other.join();
    std::thread closing([&] { EXPECT_TRUE(pipe.writer.close()); });
    EXPECT_EQ(pipe.reader.read(buffer(memory), 1h).bytes_transferred(), 0u);
    closing.join();
}

TEST_F(pipe_handle_test, a_large_write_goes_through_in_parts_and_in_order) {
    std::string all(1 << 20, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<char>(i * 7 + i / 65536);
    }
    std::thread writer([&] {
        for (const_buffer rest = bytes_of(all); !rest.empty();) {
            auto const w = pipe.writer.write(rest, patience);
            ASSERT_TRUE(w) << w.error().message();
            rest = rest.skip(w.bytes_transferred());
        }
        EXPECT_TRUE(pipe.writer.close());
    });
    std::string received;
    std::vector<std::byte> block(30'000);
    for (;;) {
        auto const r = pipe.reader.read(buffer(block), patience);
        ASSERT_TRUE(r);
        if (r.bytes_transferred() == 0) {
            break;
        }
        received += text_of(r);
    }
    writer.join();
    EXPECT_TRUE(received == all);
}

// Ownership.

TEST_F(pipe_handle_test, moving_takes_the_native_handle_along) {
    auto const native = pipe.reader.native();
    pipe_handle moved(std::move(pipe.reader));
    EXPECT_EQ(moved.native(), native);
    EXPECT_FALSE(pipe.reader.is_open());  // NOLINT: said to be closed
    pipe.reader = std::move(moved);
    EXPECT_EQ(pipe.reader.native(), native);
    auto& same = pipe.reader;
    pipe.reader = std::move(same);
    EXPECT_EQ(pipe.reader.native(), native) << "assigned to itself";
}

TEST_F(pipe_handle_test, assignment_and_destruction_close) {
    auto const before = open_descriptors();
    {
        auto other = pipe_handle::anonymous_pipe().value();
        EXPECT_EQ(open_descriptors(), before + 2);
        other.reader = std::move(pipe.reader);
        EXPECT_EQ(open_descriptors(), before + 1);
    }
    EXPECT_EQ(open_descriptors(), before - 1);
}

TEST_F(pipe_handle_test, release_gives_the_native_handle_away) {
    auto const native = pipe.writer.native();
    EXPECT_EQ(pipe.writer.release().value(), native);
    EXPECT_FALSE(pipe.writer.is_open());
    EXPECT_NE(::fcntl(static_cast<int>(native), F_GETFD), -1) << "was closed";
    ::close(static_cast<int>(native));
}

TEST_F(pipe_handle_test, a_full_descriptor_table_is_an_error) {
    full_descriptor_table const full;
    EXPECT_EQ(pipe_handle::anonymous_pipe().error(), std::errc::too_many_files_open);
}

}  // namespace
}  // namespace plumb::test
