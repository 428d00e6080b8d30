// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/listen_socket_handle.hpp>

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// What streams and listeners promise, with unix addresses.
class unix_stream : public on_every_backend {
protected:
    [[nodiscard]] endpoint path(std::string const& name = "socket") const {
        return endpoint::unix_path((directory_ / name).string()).value();
    }
    static stream_socket_handle open() {
        return stream_socket_handle::stream_socket(endpoint::family_type::unix_domain).value();
    }
    stream_socket_handle::pair connected(endpoint const& where) {
        auto listener = listen_socket_handle::listen(where).value();
        auto client = open();
        client.connect(listener.local().value(), patience).value();
        auto server = listener.accept(patience).value();
        client.set_multiplexer(multiplexer());
        server.set_multiplexer(multiplexer());
        return {std::move(client), std::move(server)};
    }
    template <class Sender>
    typename Sender::result_type complete(Sender const& sender) {
        record_of<Sender> told;
        auto operation = connect(sender, recorder(told));
        (void)operation.start();
        EXPECT_TRUE(drive_until([&] { return told.done(); }));
        return std::move(*told.value);
    }

    std::array<std::byte, 64> memory{};

private:
    temporary_directory directory_;
};

INSTANTIATE_TEST_SUITE_P(backends, unix_stream, every_backend(), name_of_backend);

TEST_P(unix_stream, connects_by_a_path_and_moves_bytes_both_ways) {
    auto listener = listen_socket_handle::listen(path()).value();
    EXPECT_EQ(listener.local().value(), path());
    listener.set_multiplexer(multiplexer());
    auto client = open();
    client.set_multiplexer(multiplexer());
    record_of<async_accept> accepted;
    auto accepting = plumb::connect(async_accept(listener), recorder(accepted));
    ASSERT_EQ(accepting.start(), io_status::pending);
    ASSERT_TRUE(complete(async_connect(client, path())));
    ASSERT_TRUE(drive_until([&] { return accepted.done(); }));
    stream_socket_handle& server = accepted.value->value();
    EXPECT_EQ(client.peer().value(), path());
    EXPECT_EQ(client.local().value(), endpoint::unix_unnamed());
    EXPECT_EQ(server.local().value(), path());
    EXPECT_EQ(server.peer().value(), endpoint::unix_unnamed());
    EXPECT_TRUE(client.set_no_delay(true)) << "it never delays";

    server.set_multiplexer(multiplexer());
    ASSERT_TRUE(complete(async_write(client, bytes_of("ping"))));
    EXPECT_EQ(text_of(complete(async_read(server, buffer(memory)))), "ping");
    ASSERT_TRUE(server.write(bytes_of("pong"), patience));
    EXPECT_EQ(text_of(client.read(buffer(memory), patience)), "pong");
}

TEST_P(unix_stream, connects_by_an_abstract_name_which_is_free_again_afterwards) {
    auto const listens = [&](endpoint const& where) {
        auto const [client, server] = connected(where);
        EXPECT_EQ(client.peer().value(), server.local().value());
        return client.peer().value();
    };
    auto const chosen = listens(endpoint::unix_unnamed());
    EXPECT_FALSE(chosen.abstract_name().empty()) << "the system chooses one";
    EXPECT_EQ(listens(chosen), chosen);
    auto client = open();
    EXPECT_EQ(client.connect(chosen).error(), std::errc::connection_refused);
}

TEST_P(unix_stream, a_listener_leaves_its_file_which_then_refuses_and_is_in_the_way) {
    auto client = open();
    EXPECT_EQ(client.connect(path()).error(), std::errc::no_such_file_or_directory);
    ASSERT_TRUE(listen_socket_handle::listen(path()));
    EXPECT_EQ(client.connect(path()).error(), std::errc::connection_refused);
    EXPECT_EQ(listen_socket_handle::listen(path()).error(), std::errc::address_in_use);
    if (!simulated()) {
        EXPECT_TRUE(std::filesystem::remove(path().path()));
        EXPECT_TRUE(listen_socket_handle::listen(path()));
    }
}

TEST_P(unix_stream, a_path_of_the_greatest_length_works) {
    std::string name(path("").path());
    auto const where = path(std::string(endpoint::most_unix_bytes - name.size(), 'x'));
    auto const [client, server] = connected(where);
    EXPECT_EQ(client.peer().value(), where);
}

TEST_P(unix_stream, a_full_backlog_is_an_error_at_once) {
    auto const listener = listen_socket_handle::listen(path(), {.backlog = 0}).value();
    std::vector<stream_socket_handle> waiting;
    for (;;) {
        waiting.push_back(open());
        waiting.back().set_multiplexer(multiplexer());
        if (auto const r = complete(async_connect(waiting.back(), path(), 5s)); !r) {
            EXPECT_EQ(r.error(), std::errc::no_buffer_space);
            break;
        }
        ASSERT_LT(waiting.size(), 10u);
    }
    EXPECT_EQ(open().connect(path(), patience).error(), std::errc::no_buffer_space);
}

TEST_P(unix_stream, half_closed_it_still_moves_bytes_the_other_way) {
    auto [client, server] = connected(path());
    ASSERT_TRUE(client.write(bytes_of("last words"), patience));
    ASSERT_TRUE(client.shutdown_write());
    EXPECT_TRUE(client.shutdown_write()) << "may be done twice";
    EXPECT_EQ(text_of(complete(async_read(server, buffer(memory)))), "last words");
    EXPECT_EQ(complete(async_read(server, buffer(memory)))->bytes(), 0u);
    ASSERT_TRUE(complete(async_write(server, bytes_of("answer"))));
    EXPECT_EQ(text_of(complete(async_read(client, buffer(memory)))), "answer");
    EXPECT_EQ(client.write(bytes_of("more")).error(), std::errc::broken_pipe);
}

TEST_P(unix_stream, a_peer_that_closes_with_unread_bytes_resets_it) {
    auto [client, server] = connected(path());
    record_of<async_read> read;
    auto reading = plumb::connect(async_read(client, buffer(memory)), recorder(read));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    ASSERT_TRUE(client.write(bytes_of("never read"), patience));
    ASSERT_TRUE(server.close());
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::connection_reset);
    EXPECT_EQ(complete(async_write(client, bytes_of("x"))).error(), std::errc::broken_pipe);
    EXPECT_EQ(complete(async_read(client, buffer(memory)))->bytes(), 0u) << "told once";
}

TEST_P(unix_stream, a_slow_reader_holds_its_writer_up_and_loses_nothing) {
    auto [client, server] = connected(path());
    std::vector<std::byte> const much(1 << 20, std::byte{7});
    std::size_t written = 0;
    const_buffer rest(much);
    for (;;) {
        auto const w = client.try_write(rest);
        if (!w) {
            EXPECT_EQ(w.error(), std::errc::timed_out);
            break;
        }
        written += w.bytes_transferred();
        ASSERT_LT(written, 64u << 20) << "it takes everything";
    }
    std::string const end = "the end";
    record_of<async_write> told;
    auto writing = plumb::connect(async_write(client, bytes_of(end)), recorder(told));
    ASSERT_EQ(writing.start(), io_status::pending);
    settle();
    EXPECT_TRUE(told.untold());
    std::string all;
    std::vector<std::byte> room(1 << 16);
    while (all.size() < written + end.size()) {
        auto const r = complete(async_read(server, buffer(room), patience));
        ASSERT_NE(r.bytes_transferred(), 0u);
        all += text_of(r);
    }
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->bytes_transferred(), end.size());
    EXPECT_EQ(all, std::string(written, '\7') + end);
}

TEST_P(unix_stream, a_canceled_accept_loses_no_connection) {
    auto listener = listen_socket_handle::listen(path()).value();
    listener.set_multiplexer(multiplexer());
    record_of<async_accept> accepted;
    auto accepting = plumb::connect(async_accept(listener), recorder(accepted));
    ASSERT_EQ(accepting.start(), io_status::pending);
    settle();
    accepting.cancel();
    ASSERT_TRUE(drive_until([&] { return accepted.done(); }));
    EXPECT_EQ(accepted.value->error(), std::errc::operation_canceled);
    auto client = open();
    ASSERT_TRUE(client.connect(path()));
    EXPECT_TRUE(listener.accept(patience));
}

TEST_P(unix_stream, closing_the_listener_resets_what_it_did_not_accept) {
    auto listener = listen_socket_handle::listen(path()).value();
    auto client = open();
    client.set_multiplexer(multiplexer());
    ASSERT_TRUE(client.connect(path()));
    ASSERT_TRUE(listener.close());
    EXPECT_EQ(complete(async_read(client, buffer(memory))).error(), std::errc::connection_reset);
}

}  // namespace
}  // namespace plumb::test
