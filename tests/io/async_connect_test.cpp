// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_connect.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"
#include "support/silent_host.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class async_connect_test : public on_every_backend {
protected:
    stream_socket_handle client;
    record_of<async_connect> connected;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            client = open();
        }
    }
    stream_socket_handle open(endpoint::family_type f = endpoint::family_type::ipv4) {
        auto socket = stream_socket_handle::stream_socket(f).value();
        socket.set_multiplexer(multiplexer());
        return socket;
    }
    bool await_connect() {
        return drive_until([&] { return connected.done(); });
    }
    /// A port that nobody listens on.
    static endpoint deserted() {
        auto const listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
        return listener.local().value();
    }
};

INSTANTIATE_TEST_SUITE_P(backends, async_connect_test, every_backend(), name_of_backend);

TEST_P(async_connect_test, connects_and_then_moves_bytes_both_ways) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto operation = connect(async_connect(client, listener.local().value()), recorder(connected));
    (void)operation.start();
    EXPECT_TRUE(connected.untold());
    ASSERT_TRUE(await_connect());
    ASSERT_TRUE(*connected.value) << connected.value->error().message();
    auto server = listener.accept(patience).value();
    server.set_multiplexer(multiplexer());
    EXPECT_EQ(client.peer().value(), listener.local().value());
    EXPECT_EQ(client.local().value(), server.peer().value());

    std::array<std::byte, 8> memory;
    record_of<async_read> read;
    record_of<async_write> written;
    auto reading = connect(async_read(client, buffer(memory)), recorder(read));
    ASSERT_EQ(reading.start(), io_status::pending);
    std::string const text = "to server";
    auto writing = connect(async_write(client, bytes_of(text)), recorder(written));
    (void)writing.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    ASSERT_TRUE(server.write(bytes_of("back"), patience));
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(text_of(*read.value), "back");
}

TEST_P(async_connect_test, connects_over_ipv6) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v6(0));
    if (!listener) {
        GTEST_SKIP() << "this system has no IPv6: " << listener.error().message();
    }
    auto socket = open(endpoint::family_type::ipv6);
    auto operation = connect(async_connect(socket, listener->local().value()), recorder(connected));
    (void)operation.start();
    ASSERT_TRUE(await_connect());
    EXPECT_TRUE(*connected.value) << connected.value->error().message();
    EXPECT_EQ(socket.peer().value(), listener->local().value());
}

TEST_P(async_connect_test, a_refused_connection_is_an_error) {
    auto operation = connect(async_connect(client, deserted()), recorder(connected));
    (void)operation.start();
    ASSERT_TRUE(await_connect());
    EXPECT_EQ(connected.value->error(), std::errc::connection_refused);
}

TEST_P(async_connect_test, a_silent_host_is_timed_out) {
    silent_host const host;
    auto const before = now();
    auto operation = connect(async_connect(client, host.where(), 30ms), recorder(connected));
    (void)operation.start();
    ASSERT_TRUE(await_connect());
    EXPECT_EQ(connected.value->error(), std::errc::timed_out);
    EXPECT_GE(now() - before, 30ms);
    EXPECT_TRUE(client.close());
}

TEST_P(async_connect_test, a_connect_that_goes_on_can_be_canceled_and_destroyed) {
    silent_host const host;
    auto operation = connect(async_connect(client, host.where()), recorder(connected));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    operation.cancel();
    ASSERT_TRUE(await_connect());
    EXPECT_EQ(connected.value->error(), std::errc::operation_canceled);
    EXPECT_TRUE(client.close());

    connected = {};
    auto other = open();
    {
        auto dropped = connect(async_connect(other, host.where()), recorder(connected));
        ASSERT_EQ(dropped.start(), io_status::pending);
    }
    EXPECT_TRUE(other.close());
    settle();
    EXPECT_TRUE(connected.untold());
}

TEST_P(async_connect_test, a_read_tried_meanwhile_does_not_begin_it_anew) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0), {.backlog = 0}).value();
    // Fill the backlog, so that the next connect stays pending until one is accepted.
    std::vector<stream_socket_handle> waiting;
    for (bool full = false; !full && waiting.size() < 5;) {
        auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        full = !s.connect(listener.local().value(), 50ms);
        if (!full) {
            waiting.push_back(std::move(s));
        }
    }
    auto operation = connect(async_connect(client, listener.local().value()), recorder(connected));
    ASSERT_EQ(operation.start(), io_status::pending);
    std::array<std::byte, 8> memory;
    record_of<async_read> read;
    auto reading = connect(async_read(client, buffer(memory)), recorder(read));
    (void)reading.start();
    settle();
    for (std::size_t i = 0; i < waiting.size(); ++i) {
        ASSERT_TRUE(listener.accept(patience));
    }
    ASSERT_TRUE(await_connect());
    EXPECT_TRUE(*connected.value) << connected.value->error().message();
}

TEST_P(async_connect_test, may_move_before_the_start) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto operation =
        std::make_unique<io_operation_connection<async_connect, recorder<result<void>>>>(
            connect(async_connect(client, listener.local().value()), recorder(connected)));
    auto moved = std::move(*operation);
    operation.reset();
    (void)moved.start();
    ASSERT_TRUE(await_connect());
    EXPECT_TRUE(*connected.value) << connected.value->error().message();
}

}  // namespace
}  // namespace plumb::test
