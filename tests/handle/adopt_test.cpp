// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/handle.hpp>

#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/handle/inherited_handle.hpp>
#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"

#include <array>
#include <string>
#include <utility>

#include <fcntl.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// What handles promise that were adopted or cloned, and may be shared.
class adopt_test : public on_every_backend {
protected:
    template <class Handle>
    Handle& driven(Handle& h) {
        h.set_multiplexer(multiplexer());
        return h;
    }
    template <class Sender>
    typename Sender::result_type complete(Sender const& sender) {
        record_of<Sender> told;
        auto operation = connect(sender, recorder(told));
        (void)operation.start();
        EXPECT_TRUE(drive_until([&] { return told.done(); }));
        return std::move(*told.value);
    }
    template <class Handle>
    [[nodiscard]] std::string receive(Handle& h) {
        return text_of(complete(async_read(driven(h), buffer(memory), patience)));
    }
    /// The same again, adopted.
    template <class Handle>
    static Handle adopted(Handle h) {
        return std::move(Handle::adopt(h.release().value()).value());
    }
    /// What others see of it; nothing of what is simulated.
    [[nodiscard]] int flags(handle const& h) const {
        return simulated() ? 0 : ::fcntl(static_cast<int>(h.native()), F_GETFL);
    }
    void set_blocking(handle const& h, bool blocks) const {
        if (!simulated()) {
            EXPECT_EQ(platform::os().set_blocking(h.native(), blocks), 0);
        }
    }
    static listen_socket_handle listener() {
        return listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    }
    static datagram_socket_handle bound() {
        auto s = datagram_socket_handle::datagram_socket(endpoint::family_type::ipv4).value();
        s.bind(endpoint::loopback_v4(0)).value();
        return s;
    }

    std::array<std::byte, 64> memory{};
};

INSTANTIATE_TEST_SUITE_P(backends, adopt_test, every_backend(), name_of_backend);

TEST_P(adopt_test, what_is_of_another_kind_is_refused_and_stays_the_callers) {
    auto const pipe = pipe_handle::anonymous_pipe().value();
    auto const streams = stream_socket_handle::socket_pair().value();
    auto const listens = listener();
    auto const datagrams = bound();
    std::array<handle const*, 4> const all{&pipe.reader, &streams.first, &listens, &datagrams};
    for (handle const* const h : all) {
        auto const refused = [&](auto adopted, handle const& own) {
            if (h == &own) {
                EXPECT_TRUE(adopted);
                (void)adopted.value().release();
            } else {
                ASSERT_FALSE(adopted);
                EXPECT_EQ(adopted.error(), error::wrong_kind);
                EXPECT_GE(platform::os().kind_of(h->native()), 0) << "closed";
            }
        };
        refused(pipe_handle::adopt(h->native()), pipe.reader);
        refused(stream_socket_handle::adopt(h->native()), streams.first);
        refused(listen_socket_handle::adopt(h->native()), listens);
        refused(datagram_socket_handle::adopt(h->native()), datagrams);
    }
    EXPECT_EQ(inherited_handle::adopt(listens.native()).error(), error::wrong_kind);
    EXPECT_EQ(pipe_handle::adopt(no_native_handle).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream_socket_handle::adopt(no_native_handle).error(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(inherited_handle::adopt(no_native_handle).error(), std::errc::bad_file_descriptor);
}

TEST_P(adopt_test, a_pipes_flags_are_never_changed) {
    for (bool const blocks : {true, false}) {
        auto own = pipe_handle::anonymous_pipe().value();
        set_blocking(own.reader, blocks);
        set_blocking(own.writer, blocks);
        auto reader = adopted(std::move(own.reader));
        auto writer = adopted(std::move(own.writer));
        auto const before = flags(reader);
        record_of<async_read> told;
        auto reading = connect(async_read(driven(reader), buffer(memory)), recorder(told));
        ASSERT_EQ(reading.start(), io_status::pending);
        settle();
        EXPECT_EQ(flags(reader), before);
        ASSERT_TRUE(complete(async_write(driven(writer), bytes_of("hello"))));
        ASSERT_TRUE(drive_until([&] { return told.done(); }));
        EXPECT_EQ(text_of(*told.value), "hello");
        EXPECT_EQ(reader.read(buffer(memory), 1ms).error(), std::errc::timed_out);
        ASSERT_TRUE(writer.write(bytes_of("more"), patience));
        EXPECT_EQ(text_of(reader.read(buffer(memory))), "more");
        EXPECT_EQ(flags(reader), before);
        auto const again = pipe_handle::adopt(reader.release().value()).value();
        EXPECT_EQ(flags(again), before);
    }
}

TEST_P(adopt_test, a_full_pipe_that_blocks_stops_nobody_else) {
    auto own = pipe_handle::anonymous_pipe().value();
    auto& reader = driven(own.reader);
    auto writer = adopted(std::move(own.writer));
    std::string all(400'000, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<char>(i * 7 + i / 65536);
    }
    std::size_t written = 0;
    for (;;) {
        auto const done = complete(async_write(
            driven(writer), const_buffer(all.data() + written, all.size() - written), 5ms));
        if (!done) {
            EXPECT_EQ(done.error(), std::errc::timed_out);
            break;
        }
        written += done.bytes_transferred();
    }
    ASSERT_LT(written, all.size());
    EXPECT_EQ(writer.try_write(bytes_of("x")).error(), std::errc::timed_out);
    ASSERT_TRUE(writer.close());
    std::string received;
    for (std::string part; !(part = receive(reader)).empty();) {
        received += part;
    }
    EXPECT_TRUE(received == all.substr(0, written));
}

TEST_P(adopt_test, a_stream_socket_that_blocks_waits_in_the_multiplexer) {
    auto tcp = tcp_pair();
    auto const socket = adopted(std::move(tcp.second));
    set_blocking(socket, true);
    auto shared = socket.clone().value();
    auto const before = flags(shared);
    record_of<async_read> told;
    auto reading = connect(async_read(driven(shared), buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    EXPECT_TRUE(told.untold());
    ASSERT_TRUE(tcp.first.write(bytes_of("hello"), patience));
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(text_of(*told.value), "hello");
    EXPECT_EQ(shared.read(buffer(memory), 1ms).error(), std::errc::timed_out);
    EXPECT_EQ(flags(shared), before);
}

TEST_P(adopt_test, a_listener_that_blocks_waits_in_the_multiplexer) {
    auto original = listener();
    auto const where = original.local().value();
    for (bool const blocks : {true, false}) {
        set_blocking(original, blocks);
        auto copy = original.clone().value();
        auto l = listen_socket_handle::adopt(copy.release().value()).value();
        auto const before = flags(l);
        EXPECT_EQ(l.accept(0s).error(), std::errc::timed_out);
        EXPECT_EQ(l.accept(2ms).error(), std::errc::timed_out);
        record_of<async_accept> told;
        auto accepting = connect(async_accept(driven(l)), recorder(told));
        ASSERT_EQ(accepting.start(), io_status::pending);
        settle();
        EXPECT_TRUE(told.untold());
        auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        ASSERT_TRUE(client.connect(where, patience));
        ASSERT_TRUE(drive_until([&] { return told.done(); }));
        auto& server = told.value->value();
        ASSERT_TRUE(server.write(bytes_of("x"), patience));
        EXPECT_EQ(text_of(client.read(buffer(memory), patience)), "x");
        EXPECT_EQ(flags(l), before);
    }
}

TEST_P(adopt_test, a_datagram_socket_that_blocks_waits_in_the_multiplexer) {
    auto s = adopted(bound());
    set_blocking(s, true);
    EXPECT_EQ(s.receive(buffer(memory), 1ms).error(), std::errc::timed_out);
    record_of<async_receive> told;
    auto receiving = connect(async_receive(driven(s), buffer(memory)), recorder(told));
    ASSERT_EQ(receiving.start(), io_status::pending);
    settle();
    auto from = bound();
    ASSERT_TRUE(from.send(bytes_of("hello"), s.local().value(), patience));
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(text_of(io_result<buffers>(told.value->value().buffers)), "hello");
}

// Clones.

TEST_P(adopt_test, a_pipe_ends_when_all_clones_of_its_writer_are_closed) {
    auto own = pipe_handle::anonymous_pipe().value();
    auto clone = own.writer.clone().value();
    ASSERT_TRUE(complete(async_write(driven(own.writer), bytes_of("one "))));
    ASSERT_TRUE(complete(async_write(driven(clone), bytes_of("two"))));
    ASSERT_TRUE(own.writer.close());
    std::string received;
    while (received.size() < 7) {
        received += receive(own.reader);
    }
    EXPECT_EQ(received, "one two");
    record_of<async_read> told;
    auto reading = connect(async_read(own.reader, buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    EXPECT_TRUE(told.untold()) << "the clone is open";
    ASSERT_TRUE(clone.close());
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->bytes_transferred(), 0u);
}

TEST_P(adopt_test, closing_a_handle_leaves_the_operations_of_its_clone_alone) {
    auto own = pipe_handle::anonymous_pipe().value();
    auto clone = own.reader.clone().value();
    record_of<async_read> first;
    record_of<async_read> second;
    auto reading = connect(async_read(driven(own.reader), buffer(memory)), recorder(first));
    auto other = connect(async_read(driven(clone), buffer(memory)), recorder(second));
    ASSERT_EQ(reading.start(), io_status::pending);
    ASSERT_EQ(other.start(), io_status::pending);
    settle();
    ASSERT_TRUE(own.reader.close());
    ASSERT_TRUE(drive_until([&] { return first.done(); }));
    EXPECT_EQ(first.value->error(), std::errc::operation_canceled);
    EXPECT_TRUE(second.untold());
    ASSERT_TRUE(own.writer.write(bytes_of("x"), patience));
    ASSERT_TRUE(drive_until([&] { return second.done(); }));
    EXPECT_EQ(text_of(*second.value), "x");
}

TEST_P(adopt_test, a_connection_stays_until_all_clones_are_closed) {
    auto tcp = tcp_pair();
    auto clone = tcp.second.clone().value();
    ASSERT_TRUE(tcp.second.close());
    ASSERT_TRUE(complete(async_write(tcp.first, bytes_of("hello"))));
    EXPECT_EQ(receive(clone), "hello");
    EXPECT_EQ(tcp.first.read(buffer(memory), 5ms).error(), std::errc::timed_out);
    ASSERT_TRUE(clone.close());
    EXPECT_EQ(receive(tcp.first), "");
}

TEST_P(adopt_test, a_listener_goes_on_in_its_clone) {
    auto original = listener();
    auto clone = original.clone().value();
    auto const where = original.local().value();
    ASSERT_TRUE(original.close());
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    ASSERT_TRUE(client.connect(where, patience));
    EXPECT_TRUE(complete(async_accept(driven(clone), patience)));
    EXPECT_EQ(clone.accept(0s).error(), std::errc::timed_out);
}

TEST_P(adopt_test, a_datagram_is_received_by_one_of_the_clones) {
    auto s = bound();
    auto clone = s.clone().value();
    auto from = bound();
    ASSERT_TRUE(from.send(bytes_of("one"), s.local().value(), patience));
    EXPECT_TRUE(complete(async_receive(driven(s), buffer(memory), patience)));
    EXPECT_EQ(clone.receive(buffer(memory), 1ms).error(), std::errc::timed_out);
    ASSERT_TRUE(s.close());
    ASSERT_TRUE(from.send(bytes_of("two"), clone.local().value(), patience));
    EXPECT_TRUE(complete(async_receive(driven(clone), buffer(memory), patience)));
}

TEST_P(adopt_test, of_a_closed_handle_there_is_no_clone) {
    EXPECT_EQ(pipe_handle().clone().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream_socket_handle().clone().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(listen_socket_handle().clone().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(datagram_socket_handle().clone().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(inherited_handle().clone().error(), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace plumb::test
