// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_accept.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"
#include "support/descriptors.hpp"

#include <array>
#include <string>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class async_accept_test : public on_every_backend {
protected:
    listen_socket_handle listener;
    record_of<async_accept> accepted;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
            listener.set_multiplexer(multiplexer());
        }
    }
    stream_socket_handle dial() {
        auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        client.connect(listener.local().value(), patience).value();
        return client;
    }
    bool await_accept() {
        return drive_until([&] { return accepted.done(); });
    }
};

INSTANTIATE_TEST_SUITE_P(backends, async_accept_test, every_backend(), name_of_backend);

TEST_P(async_accept_test, gives_a_connection_that_comes_later) {
    auto operation = connect(async_accept(listener), recorder(accepted));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    EXPECT_TRUE(accepted.untold());
    auto client = dial();
    ASSERT_TRUE(await_accept());
    ASSERT_TRUE(*accepted.value) << accepted.value->error().message();
    stream_socket_handle& server = **accepted.value;
    EXPECT_EQ(server.peer().value(), client.local().value());
    EXPECT_EQ(server.local().value(), listener.local().value());
    ASSERT_TRUE(client.write(bytes_of("hi"), patience));
    std::array<std::byte, 8> memory;
    EXPECT_EQ(text_of(server.read(buffer(memory), patience)), "hi");
}

TEST_P(async_accept_test, gives_each_of_several_connections_once) {
    std::vector<stream_socket_handle> clients;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(dial());
    }
    auto operation = connect(async_accept(listener), recorder(accepted));
    for (auto const& client : clients) {
        (void)operation.start();
        ASSERT_TRUE(await_accept());
        ASSERT_TRUE(*accepted.value);
        EXPECT_EQ((*accepted.value)->peer().value(), client.local().value());
        accepted = {};
        operation.reset();
    }
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    EXPECT_TRUE(accepted.untold());
}

TEST_P(async_accept_test, is_timed_out_at_its_deadline) {
    auto operation = connect(async_accept(listener, 5ms), recorder(accepted));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(await_accept());
    EXPECT_EQ(accepted.value->error(), std::errc::timed_out);
    accepted = {};
    auto at_once = connect(async_accept(listener, 0s), recorder(accepted));
    (void)at_once.start();
    ASSERT_TRUE(await_accept());
    EXPECT_EQ(accepted.value->error(), std::errc::timed_out);
}

TEST_P(async_accept_test, a_canceled_accept_loses_no_connection) {
    auto operation = connect(async_accept(listener), recorder(accepted));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    auto client = dial();
    operation.cancel();
    ASSERT_TRUE(await_accept());
    if (!*accepted.value) {
        EXPECT_EQ(accepted.value->error(), std::errc::operation_canceled);
        accepted = {};
        operation.reset();
        (void)operation.start();
        ASSERT_TRUE(await_accept());
    }
    ASSERT_TRUE(*accepted.value);
    EXPECT_EQ((*accepted.value)->peer().value(), client.local().value());
}

TEST_P(async_accept_test, destroyed_with_a_connection_that_nobody_took_it_closes_it) {
    if (simulated()) {
        GTEST_SKIP() << "simulated handles are no descriptors to be counted";
    }
    for (bool const settled_before : {false, true}) {
        auto const before = open_descriptors();
        auto client = dial();
        {
            auto operation = connect(async_accept(listener), recorder(accepted));
            (void)operation.start();
            if (settled_before) {
                (void)multiplexer().complete_io(0);
            }
        }
        (void)multiplexer().try_run();
        EXPECT_TRUE(accepted.untold());
        EXPECT_LE(open_descriptors(), before + 1) << "only the client may be open";
        (void)client.close();
        while (listener.accept(0s)) {
        }
    }
}

TEST_P(async_accept_test, the_multiplexer_may_end_with_a_connection_that_nobody_took) {
    if (simulated()) {
        GTEST_SKIP() << "simulated handles are no descriptors to be counted";
    }
    auto client = dial();
    auto const before = open_descriptors();
    {
        auto operation = connect(async_accept(listener), recorder(accepted));
        (void)operation.start();
        end_multiplexer();
    }
    EXPECT_TRUE(accepted.untold());
    EXPECT_LE(open_descriptors(), before);
}

TEST_P(async_accept_test, closing_the_listener_cancels_and_drops_the_backlog) {
    auto operation = connect(async_accept(listener), recorder(accepted));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    auto client = dial();
    ASSERT_TRUE(listener.close());
    ASSERT_TRUE(await_accept());
    if (*accepted.value) {
        accepted.value.reset();  // was accepted first; drop it
    } else {
        EXPECT_EQ(accepted.value->error(), std::errc::operation_canceled);
    }
    std::array<std::byte, 8> memory;
    auto const end = client.read(buffer(memory), patience);
    EXPECT_EQ(end.bytes_transferred(), 0u);
    EXPECT_TRUE(end || end.error() != std::errc::timed_out);
}

TEST_P(async_accept_test, a_full_descriptor_table_is_told_once_an_accept_and_passes) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated system has no table of descriptors";
    }
    auto operation = connect(async_accept(listener), recorder(accepted));
    auto client = dial();
    {
        full_descriptor_table const full;
        for (int i = 0; i < 3; ++i) {
            auto const turns = multiplexer().counters().turns;
            (void)operation.start();
            ASSERT_TRUE(await_accept());
            ASSERT_FALSE(*accepted.value);
            EXPECT_EQ(accepted.value->error(), std::errc::too_many_files_open);
            EXPECT_LE(multiplexer().counters().turns, turns + 5) << "it spins";
            accepted = {};
            operation.reset();
        }
    }
    (void)operation.start();
    ASSERT_TRUE(await_accept());
    ASSERT_TRUE(*accepted.value) << accepted.value->error().message();
    EXPECT_EQ((*accepted.value)->peer().value(), client.local().value());
}

TEST_P(async_accept_test, a_table_that_fills_while_it_waits_is_an_error_that_passes) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated system has no table of descriptors";
    }
    auto operation = connect(async_accept(listener), recorder(accepted));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    {
        full_descriptor_table const full;
        client.connect(listener.local().value(), patience).value();
        ASSERT_TRUE(await_accept());
        EXPECT_EQ(accepted.value->error(), std::errc::too_many_files_open);
    }
    accepted = {};
    operation.reset();
    (void)operation.start();
    ASSERT_TRUE(await_accept());
    EXPECT_TRUE(*accepted.value);
}

TEST_P(async_accept_test, a_second_accept_is_told_that_the_handle_is_busy) {
    record_of<async_accept> second;
    auto operation = connect(async_accept(listener), recorder(accepted));
    auto late = connect(async_accept(listener), recorder(second));
    ASSERT_EQ(operation.start(), io_status::pending);
    (void)late.start();
    ASSERT_TRUE(drive_until([&] { return second.done(); }));
    EXPECT_EQ(second.value->error(), std::errc::device_or_resource_busy);
}

}  // namespace
}  // namespace plumb::test
