// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/stream_socket_handle.hpp>

#include <plumb/handle/listen_socket_handle.hpp>

#include "support/backend.hpp"
#include "support/descriptors.hpp"

#include <array>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

stream_socket_handle::pair connected() {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    client.connect(listener.local().value(), patience).value();
    return {std::move(client), listener.accept(patience).value()};
}

class stream_socket_handle_test : public ::testing::Test {
protected:
    stream_socket_handle::pair tcp = connected();
    std::array<std::byte, 64> memory{};
};

TEST_F(stream_socket_handle_test, a_default_one_is_closed) {
    stream_socket_handle h;
    EXPECT_FALSE(h.is_open());
    EXPECT_EQ(h.kind(), handle_kind::stream_socket);
    EXPECT_TRUE(h.close());
    EXPECT_EQ(h.read(buffer(memory)).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(h.shutdown_write().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(h.local().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(h.peer().error(), std::errc::bad_file_descriptor);
}

TEST_F(stream_socket_handle_test, all_sockets_are_close_on_exec) {
    auto pair = stream_socket_handle::socket_pair().value();
    for (auto const* const s : {&tcp.first, &tcp.second, &pair.first, &pair.second}) {
        EXPECT_NE(::fcntl(static_cast<int>(s->native()), F_GETFD) & FD_CLOEXEC, 0);
    }
}

TEST_F(stream_socket_handle_test, knows_both_ends) {
    EXPECT_EQ(tcp.first.local().value(), tcp.second.peer().value());
    EXPECT_EQ(tcp.second.local().value(), tcp.first.peer().value());
    EXPECT_TRUE(tcp.first.local().value().is_loopback());
}

TEST_F(stream_socket_handle_test, bytes_go_both_ways) {
    EXPECT_EQ(tcp.first.write(bytes_of("ping")).bytes_transferred(), 4u);
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "ping");
    EXPECT_EQ(tcp.second.write(bytes_of("pong")).bytes_transferred(), 4u);
    EXPECT_EQ(text_of(tcp.first.read(buffer(memory), patience)), "pong");
}

TEST_F(stream_socket_handle_test, several_buffers_go_both_ways) {
    std::string const a = "one ";
    std::string const b = "two";
    std::array<const_buffer, 2> const from{bytes_of(a), bytes_of(b)};
    EXPECT_EQ(tcp.first.write(const_buffers(from)).bytes_transferred(), 7u);
    std::array<std::byte, 2> first;
    std::array<std::byte, 64> second;
    std::array<buffer, 2> const into{buffer(first), buffer(second)};
    EXPECT_EQ(text_of(tcp.second.read(buffers(into), patience)), "one two");
}

TEST_F(stream_socket_handle_test, a_pair_is_connected_with_each_other) {
    auto pair = stream_socket_handle::socket_pair().value();
    EXPECT_TRUE(pair.first.write(bytes_of("x")));
    EXPECT_EQ(text_of(pair.second.read(buffer(memory), patience)), "x");
    ASSERT_TRUE(pair.first.close());
    EXPECT_EQ(pair.second.read(buffer(memory), patience).bytes_transferred(), 0u);
}

TEST_F(stream_socket_handle_test, half_closed_it_still_reads) {
    ASSERT_TRUE(tcp.first.shutdown_write());
    EXPECT_TRUE(tcp.first.shutdown_write()) << "twice is allowed";
    auto const end = tcp.second.read(buffer(memory), patience);
    EXPECT_TRUE(end);
    EXPECT_EQ(end.bytes_transferred(), 0u);
    EXPECT_TRUE(tcp.second.write(bytes_of("still")));
    EXPECT_EQ(text_of(tcp.first.read(buffer(memory), patience)), "still");
    EXPECT_EQ(tcp.first.write(bytes_of("x")).error(), std::errc::broken_pipe);
}

TEST_F(stream_socket_handle_test, a_reset_is_an_error_once_and_no_signal) {
    std::signal(SIGPIPE, SIG_DFL);
    ASSERT_TRUE(tcp.first.set_reset_on_close());
    ASSERT_TRUE(tcp.first.close());
    EXPECT_EQ(tcp.second.read(buffer(memory), patience).error(), std::errc::connection_reset);
    EXPECT_EQ(tcp.second.read(buffer(memory), patience).bytes_transferred(), 0u);
    EXPECT_EQ(tcp.second.write(bytes_of("x"), patience).error(), std::errc::broken_pipe);
}

TEST_F(stream_socket_handle_test, trying_never_waits) {
    auto const before = clock::now();
    EXPECT_EQ(tcp.first.try_read(buffer(memory)).error(), std::errc::timed_out);
    std::string const block(64 << 10, 'x');
    std::size_t sent = 0;
    for (;;) {
        auto const w = tcp.first.try_write(bytes_of(block));
        if (!w) {
            EXPECT_EQ(w.error(), std::errc::timed_out);
            break;
        }
        sent += w.bytes_transferred();
    }
    EXPECT_GT(sent, 0u);
    EXPECT_LT(clock::now() - before, 5s);
}

TEST_F(stream_socket_handle_test, waits_until_its_deadline_and_not_less) {
    auto before = clock::now();
    EXPECT_EQ(tcp.first.read(buffer(memory), 5ms).error(), std::errc::timed_out);
    EXPECT_GE(clock::now() - before, 5ms);
    auto pair = stream_socket_handle::socket_pair().value();  // stays full, unlike TCP
    std::string const block(64 << 10, 'x');
    while (pair.first.try_write(bytes_of(block))) {
    }
    before = clock::now();
    EXPECT_EQ(pair.first.write(bytes_of(block), 5ms).error(), std::errc::timed_out);
    EXPECT_GE(clock::now() - before, 5ms);
}

TEST_F(stream_socket_handle_test, waits_for_another_thread) {
    std::thread other([&] { EXPECT_TRUE(tcp.first.write(bytes_of("late"))); });
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory))), "late");
    other.join();
}

TEST_F(stream_socket_handle_test, an_adopted_descriptor_keeps_its_flags) {
    int native[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, native), 0);
    int const before = ::fcntl(native[0], F_GETFL);
    auto a = stream_socket_handle::adopt(native[0]).value();
    auto b = stream_socket_handle::adopt(native[1]).value();
    // Blocking descriptors, yet nothing blocks beyond its deadline.
    EXPECT_EQ(a.try_read(buffer(memory)).error(), std::errc::timed_out);
    std::string const block(64 << 10, 'x');
    while (a.try_write(bytes_of(block))) {
    }
    EXPECT_EQ(a.write(bytes_of(block), 1ms).error(), std::errc::timed_out);
    EXPECT_EQ(::fcntl(native[0], F_GETFL), before);
    EXPECT_EQ(b.release().value(), native[1]);
    EXPECT_FALSE(b.is_open());
    ::close(native[1]);
}

TEST_F(stream_socket_handle_test, small_writes_can_be_sent_at_once) {
    auto const no_delay = [&] {
        int value = -1;
        socklen_t size = sizeof(value);
        ::getsockopt(static_cast<int>(tcp.first.native()), IPPROTO_TCP, TCP_NODELAY, &value, &size);
        return value != 0;
    };
    EXPECT_TRUE(tcp.first.set_no_delay(true));
    EXPECT_TRUE(no_delay());
    EXPECT_TRUE(tcp.first.set_no_delay(false));
    EXPECT_FALSE(no_delay());
    auto pair = stream_socket_handle::socket_pair().value();
    EXPECT_TRUE(pair.first.set_no_delay(true)) << "a unix socket never waits";
}

// Connecting.

TEST_F(stream_socket_handle_test, a_refused_connection_is_an_error) {
    auto const deserted =
        listen_socket_handle::listen(endpoint::loopback_v4(0)).value().local().value();
    auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    EXPECT_EQ(s.connect(deserted).error(), std::errc::connection_refused);
    EXPECT_TRUE(s.close());
}

TEST_F(stream_socket_handle_test, a_silent_host_is_timed_out) {
    auto const listener =
        listen_socket_handle::listen(endpoint::loopback_v4(0), {.backlog = 0}).value();
    std::vector<stream_socket_handle> waiting;
    for (int i = 0; i < 5; ++i) {
        auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        auto const before = clock::now();
        auto const done = s.connect(listener.local().value(), 30ms);
        waiting.push_back(std::move(s));
        if (!done) {
            EXPECT_EQ(done.error(), std::errc::timed_out);
            EXPECT_GE(clock::now() - before, 30ms);
            return;
        }
    }
    FAIL() << "the backlog never filled";
}

TEST_F(stream_socket_handle_test, an_address_of_the_other_family_is_an_error) {
    auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    EXPECT_FALSE(s.connect(endpoint::loopback_v6(1), patience));
}

TEST_F(stream_socket_handle_test, a_full_descriptor_table_is_an_error) {
    full_descriptor_table const full;
    EXPECT_EQ(stream_socket_handle::stream_socket(endpoint::family_type::ipv4).error(),
              std::errc::too_many_files_open);
    EXPECT_EQ(stream_socket_handle::socket_pair().error(), std::errc::too_many_files_open);
}

}  // namespace
}  // namespace plumb::test
