// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/listen_socket_handle.hpp>

#include "support/backend.hpp"
#include "support/descriptors.hpp"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

class listen_socket_handle_test : public ::testing::Test {
protected:
    listen_socket_handle listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();

    stream_socket_handle dial() {
        auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        s.connect(listener.local().value(), patience).value();
        return s;
    }
};

TEST_F(listen_socket_handle_test, a_default_one_is_closed) {
    listen_socket_handle h;
    EXPECT_FALSE(h.is_open());
    EXPECT_EQ(h.kind(), handle_kind::listen_socket);
    EXPECT_EQ(h.accept(0s).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(h.local().error(), std::errc::bad_file_descriptor);
}

TEST_F(listen_socket_handle_test, the_system_chooses_a_port_for_port_zero) {
    EXPECT_NE(listener.local().value().port(), 0);
    EXPECT_NE(::fcntl(static_cast<int>(listener.native()), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(listen_socket_handle_test, accepts_each_connection_once) {
    auto a = dial();
    auto b = dial();
    EXPECT_EQ(listener.accept(patience).value().peer().value(), a.local().value());
    auto second = listener.accept(patience).value();
    EXPECT_EQ(second.peer().value(), b.local().value());
    EXPECT_NE(::fcntl(static_cast<int>(second.native()), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(listener.accept(0s).error(), std::errc::timed_out);
}

TEST_F(listen_socket_handle_test, waits_until_its_deadline_and_not_less) {
    auto const before = clock::now();
    EXPECT_EQ(listener.accept(5ms).error(), std::errc::timed_out);
    EXPECT_GE(clock::now() - before, 5ms);
}

TEST_F(listen_socket_handle_test, waits_for_another_thread) {
    std::thread other([&] { (void)dial(); });
    EXPECT_TRUE(listener.accept());
    other.join();
}

TEST_F(listen_socket_handle_test, an_address_in_use_is_an_error) {
    EXPECT_EQ(listen_socket_handle::listen(listener.local().value()).error(),
              std::errc::address_in_use);
}

TEST_F(listen_socket_handle_test, an_address_can_be_listened_on_again_after_connections) {
    auto const where = listener.local().value();
    {
        auto client = dial();
        auto server = listener.accept(patience).value();
        ASSERT_TRUE(server.close());  // the side that closes first keeps the port a while
        std::array<std::byte, 1> memory;
        (void)client.read(buffer(memory), patience);
    }
    ASSERT_TRUE(listener.close());
    EXPECT_TRUE(listen_socket_handle::listen(where));
}

TEST_F(listen_socket_handle_test, several_may_share_a_port_when_all_ask_for_it) {
    auto first =
        listen_socket_handle::listen(endpoint::loopback_v4(0), {.share_port = true}).value();
    auto const where = first.local().value();
    EXPECT_TRUE(listen_socket_handle::listen(where, {.share_port = true}));
    EXPECT_EQ(listen_socket_handle::listen(where).error(), std::errc::address_in_use);
}

TEST_F(listen_socket_handle_test, an_address_of_somebody_else_is_an_error) {
    // From the block that is reserved for documentation.
    auto const foreign = endpoint::parse("192.0.2.1:0").value();
    EXPECT_EQ(listen_socket_handle::listen(foreign).error(), std::errc::address_not_available);
}

TEST_F(listen_socket_handle_test, listens_on_ipv6) {
    auto const v6 = listen_socket_handle::listen(endpoint::loopback_v6(0));
    if (!v6) {
        GTEST_SKIP() << "this system has no IPv6: " << v6.error().message();
    }
    auto const where = v6->local().value();
    EXPECT_EQ(where.family(), endpoint::family_type::ipv6);
    EXPECT_TRUE(where.is_loopback());
}

TEST_F(listen_socket_handle_test, a_backlog_that_is_dropped_ends_its_connections) {
    auto client = dial();
    ASSERT_TRUE(listener.close());
    std::array<std::byte, 1> memory;
    auto const r = client.read(buffer(memory), patience);
    EXPECT_EQ(r.bytes_transferred(), 0u);
    EXPECT_TRUE(r || r.error() != std::errc::timed_out);
}

TEST_F(listen_socket_handle_test, a_full_descriptor_table_passes) {
    auto client = dial();
    {
        full_descriptor_table const full;
        EXPECT_EQ(listener.accept(patience).error(), std::errc::too_many_files_open);
        EXPECT_EQ(listener.accept(0s).error(), std::errc::too_many_files_open);
        EXPECT_EQ(listen_socket_handle::listen(endpoint::loopback_v4(0)).error(),
                  std::errc::too_many_files_open);
    }
    EXPECT_EQ(listener.accept(patience).value().peer().value(), client.local().value());
}

TEST_F(listen_socket_handle_test, a_failed_listen_leaks_nothing) {
    auto const before = open_descriptors();
    EXPECT_FALSE(listen_socket_handle::listen(listener.local().value()));
    EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace plumb::test
