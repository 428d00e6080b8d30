// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/datagram_socket_handle.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_send.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/allocations.hpp"
#include "support/backend.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <net/if.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using datagram = datagram_socket_handle::datagram;

template <class Sender>
using state_of = io_operation_connection<Sender, recorder<typename Sender::result_type>>;
static_assert(sizeof(state_of<async_send>) <= 384 + sizeof(void*));
static_assert(sizeof(state_of<async_receive>) <= 384 + sizeof(void*));

constexpr auto ipv4 = endpoint::family_type::ipv4;
constexpr auto ipv6 = endpoint::family_type::ipv6;
constexpr auto unix_domain = endpoint::family_type::unix_domain;

class datagram_test : public on_every_backend {
protected:
    [[nodiscard]] datagram_socket_handle open(endpoint::family_type f = ipv4) {
        auto s = datagram_socket_handle::datagram_socket(f).value();
        s.set_multiplexer(multiplexer());
        return s;
    }
    [[nodiscard]] datagram_socket_handle bound(endpoint const& where = endpoint::loopback_v4(0)) {
        auto s = open(where.family());
        s.bind(where).value();
        return s;
    }
    struct pair {
        datagram_socket_handle first;
        datagram_socket_handle second;
    };
    /// Two sockets, each connected to the other.
    [[nodiscard]] pair connected() {
        pair p{bound(), bound()};
        p.first.connect(p.second.local().value()).value();
        p.second.connect(p.first.local().value()).value();
        return p;
    }
    [[nodiscard]] endpoint path(std::string const& name) const {
        return endpoint::unix_path((directory_ / name).string()).value();
    }

    template <class Sender>
    typename Sender::result_type complete(Sender const& sender) {
        record_of<Sender> told;
        auto operation = plumb::connect(sender, recorder(told));
        (void)operation.start();
        EXPECT_TRUE(told.untold());
        EXPECT_TRUE(drive_until([&] { return told.done(); }));
        return std::move(*told.value);
    }
    static std::string text(result<datagram> const& d) {
        return d ? text_of(io_result<buffers>(d->buffers)) : d.error().message();
    }
    [[nodiscard]] std::string receive(datagram_socket_handle& s) {
        return text(s.receive(buffer(memory), patience));
    }

    std::string const hello = "hello";
    std::array<std::byte, 64> memory{};

private:
    temporary_directory directory_;
};

INSTANTIATE_TEST_SUITE_P(backends, datagram_test, every_backend(), name_of_backend);

TEST_P(datagram_test, goes_from_one_socket_to_another_that_learns_who_sent_it) {
    for (auto const& [a, b] : {std::pair(endpoint::loopback_v4(0), endpoint::loopback_v4(0)),
                               std::pair(endpoint::loopback_v6(0), endpoint::loopback_v6(0)),
                               std::pair(path("a"), path("b")),
                               std::pair(endpoint::unix_unnamed(), endpoint::unix_unnamed())}) {
        auto from = open(a.family());
        auto to = open(b.family());
        if (!from.bind(a) || !to.bind(b)) {
            ASSERT_EQ(a.family(), ipv6) << "this system may lack IPv6 alone";
            continue;
        }
        auto const where = to.local().value();
        record_of<async_receive> received;
        auto receiving = plumb::connect(async_receive(to, buffer(memory)), recorder(received));
        ASSERT_EQ(receiving.start(), io_status::pending);
        settle();
        EXPECT_TRUE(received.untold());
        auto const sent = complete(async_send(from, bytes_of(hello), where));
        ASSERT_TRUE(sent) << sent.error().message();
        EXPECT_EQ(sent.bytes_transferred(), hello.size());
        ASSERT_TRUE(drive_until([&] { return received.done(); }));
        EXPECT_EQ(text(*received.value), hello);
        EXPECT_EQ((*received.value)->from, from.local().value());

        ASSERT_TRUE(from.send(bytes_of(hello), where));
        auto const got = to.receive(buffer(memory), patience);
        EXPECT_EQ(text(got), hello);
        EXPECT_EQ(got->from, from.local().value());
    }
}

TEST_P(datagram_test, of_a_unix_socket_without_a_name_is_from_nobody) {
    auto to = bound(path("to"));
    auto from = open(unix_domain);
    ASSERT_TRUE(complete(async_send(from, bytes_of(hello), path("to"))));
    auto const got = complete(async_receive(to, buffer(memory)));
    EXPECT_EQ(text(got), hello);
    EXPECT_EQ(got->from, endpoint::unix_unnamed());
    EXPECT_EQ(to.send(bytes_of(hello), path("missing")).error(),
              std::errc::no_such_file_or_directory);
}

TEST_P(datagram_test, of_several_each_is_received_whole_and_in_order) {
    auto [a, b] = connected();
    record_of<async_receive> first;
    auto operation = plumb::connect(async_receive(b, buffer(memory)), recorder(first));
    ASSERT_EQ(operation.start(), io_status::pending);
    for (std::string const text : {"one", "two", "three", "four"}) {
        ASSERT_TRUE(a.write(bytes_of(text)));
    }
    ASSERT_TRUE(drive_until([&] { return first.done(); }));
    EXPECT_EQ(text(*first.value), "one");
    // One event told of all of them.
    EXPECT_EQ(text(complete(async_receive(b, buffer(memory)))), "two");
    EXPECT_EQ(text_of(complete(async_read(b, buffer(memory)))), "three");
    EXPECT_EQ(receive(b), "four");
    EXPECT_EQ(b.receive(buffer(memory), 0s).error(), std::errc::timed_out);
}

TEST_P(datagram_test, that_is_empty_is_no_end) {
    auto [a, b] = connected();
    auto const where = b.local().value();
    std::string const nothing;
    ASSERT_TRUE(complete(async_send(a, bytes_of(nothing), where)));
    ASSERT_TRUE(a.send(bytes_of(nothing), where));
    ASSERT_TRUE(a.send(bytes_of(nothing), where));
    ASSERT_TRUE(a.send(bytes_of(hello), where));
    auto const got = complete(async_receive(b, buffer(memory)));
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->buffers.bytes(), 0u);
    EXPECT_EQ(got->from, a.local().value());
    EXPECT_EQ(complete(async_read(b, buffer(memory)))->bytes(), 0u);
    EXPECT_TRUE(b.receive(buffers(), patience)) << "there is room for an empty one";
    EXPECT_EQ(text_of(complete(async_read(b, buffer(memory)))), hello);
}

TEST_P(datagram_test, larger_than_the_buffers_is_an_error_and_the_next_is_whole) {
    auto [a, b] = connected();
    std::array<std::byte, 4> little;
    for (int i = 0; i < 4; ++i) {
        ASSERT_TRUE(a.write(bytes_of(hello)));
    }
    ASSERT_TRUE(a.write(bytes_of("fits")));
    EXPECT_EQ(complete(async_receive(b, buffer(little))).error(), std::errc::message_size);
    EXPECT_EQ(static_cast<char>(little[3]), 'l') << "the first bytes are there";
    EXPECT_EQ(complete(async_read(b, buffer(little))).error(), std::errc::message_size);
    EXPECT_EQ(b.receive(buffer(little), patience).error(), std::errc::message_size);
    EXPECT_EQ(b.read(buffer(little), patience).error(), std::errc::message_size);
    EXPECT_EQ(text(complete(async_receive(b, buffer(little)))), "fits");

    // Also for operations that were waiting.
    for (bool const addressed : {true, false}) {
        record_of<async_receive> received;
        record_of<async_read> read;
        auto receiving = plumb::connect(async_receive(b, buffer(little)), recorder(received));
        auto reading = plumb::connect(async_read(b, buffer(little)), recorder(read));
        ASSERT_EQ(addressed ? receiving.start() : reading.start(), io_status::pending);
        settle();
        ASSERT_TRUE(a.write(bytes_of(hello)));
        ASSERT_TRUE(drive_until([&] { return received.done() || read.done(); }));
        EXPECT_EQ(addressed ? received.value->error() : read.value->error(),
                  std::errc::message_size);
    }
}

TEST_P(datagram_test, too_large_to_be_sent_is_an_error_and_nothing_is_sent) {
    auto [a, b] = connected();
    std::vector<std::byte> const much(70'000);
    auto const where = b.local().value();
    EXPECT_EQ(complete(async_send(a, const_buffer(much), where)).error(), std::errc::message_size);
    EXPECT_EQ(complete(async_write(a, const_buffer(much))).error(), std::errc::message_size);
    EXPECT_EQ(a.send(const_buffer(much), where).error(), std::errc::message_size);
    EXPECT_EQ(a.write(const_buffer(much)).error(), std::errc::message_size);
    EXPECT_EQ(b.receive(buffer(memory), 0s).error(), std::errc::timed_out);
}

TEST_P(datagram_test, may_lie_in_several_buffers_on_both_sides_also_in_a_part_of_them) {
    auto [a, b] = connected();
    auto const where = b.local().value();
    std::string const text_of_two = "two halves";
    std::array const halves{const_buffer(text_of_two.data(), 4),
                            const_buffer(text_of_two.data() + 4, 6)};
    std::array<std::byte, 3> front{};
    std::array<std::byte, 9> back{};
    std::array const room{buffer(front), buffer(back)};
    for (std::size_t const size : {10u, 7u}) {
        auto const list = const_buffers(halves).first(size);
        auto const expected = text_of_two.substr(0, size);
        ASSERT_EQ(complete(async_send(a, list, where))->bytes(), size);
        EXPECT_EQ(text(complete(async_receive(b, buffers(room)))), expected);
        ASSERT_TRUE(a.send(list, where));
        EXPECT_EQ(text(b.receive(buffers(room).first(size), patience)), expected);
        ASSERT_TRUE(a.send(list, where));
        EXPECT_EQ(text(complete(async_receive(b, buffers(room).first(size)))), expected);
        ASSERT_TRUE(a.send(list, where));
        EXPECT_EQ(complete(async_receive(b, buffers(room).first(size - 1))).error(),
                  std::errc::message_size);
    }
    ASSERT_TRUE(complete(async_write(a, const_buffers(halves))));
    EXPECT_EQ(text_of(complete(async_read(b, buffers(room)))), text_of_two);
}

TEST_P(datagram_test, in_more_buffers_than_one_call_takes_is_too_large) {
    auto [a, b] = connected();
    std::vector<const_buffer> const many(2000, const_buffer("x", 1));
    EXPECT_EQ(complete(async_send(a, const_buffers(many), b.local().value())).error(),
              std::errc::message_size);
    EXPECT_EQ(complete(async_write(a, const_buffers(many))).error(), std::errc::message_size);
    EXPECT_EQ(a.write(const_buffers(many)).error(), std::errc::message_size);
    EXPECT_EQ(b.receive(buffer(memory), 0s).error(), std::errc::timed_out);
}

TEST_P(datagram_test, to_where_nobody_listens_fails_one_later_operation) {
    auto gone = bound();
    auto const where = gone.local().value();
    auto s = bound();
    ASSERT_TRUE(s.connect(where));
    EXPECT_EQ(s.peer().value(), where);
    ASSERT_TRUE(gone.close());

    record_of<async_read> read;
    auto reading = plumb::connect(async_read(s, buffer(memory)), recorder(read));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    ASSERT_TRUE(complete(async_write(s, bytes_of(hello))));
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::connection_refused);

    auto back = bound(where);
    ASSERT_TRUE(complete(async_write(s, bytes_of(hello)))) << "told once";
    EXPECT_EQ(receive(back), hello);
    ASSERT_TRUE(back.send(bytes_of(hello), s.local().value()));
    EXPECT_EQ(text_of(complete(async_read(s, buffer(memory)))), hello);

    ASSERT_TRUE(back.close());
    ASSERT_TRUE(s.write(bytes_of(hello)));
    EXPECT_EQ(complete(async_receive(s, buffer(memory), patience)).error(),
              std::errc::connection_refused);
    EXPECT_EQ(s.receive(buffer(memory), 0s).error(), std::errc::timed_out);
}

TEST_P(datagram_test, of_others_than_the_peer_is_not_received) {
    auto [a, b] = connected();
    auto stranger = bound();
    (void)stranger.send(bytes_of("from a stranger"), b.local().value());
    ASSERT_TRUE(a.write(bytes_of(hello)));
    EXPECT_EQ(text(complete(async_receive(b, buffer(memory)))), hello);
}

TEST_P(datagram_test, that_does_not_come_is_timed_out) {
    auto s = bound();
    auto const before = now();
    EXPECT_EQ(complete(async_receive(s, buffer(memory), 5ms)).error(), std::errc::timed_out);
    EXPECT_GE(now() - before, 5ms);
    EXPECT_EQ(complete(async_receive(s, buffer(memory), 0s)).error(), std::errc::timed_out);
    EXPECT_EQ(s.receive(buffer(memory), 5ms).error(), std::errc::timed_out);
    ASSERT_TRUE(s.send(bytes_of(hello), s.local().value()));
    EXPECT_EQ(text(complete(async_receive(s, buffer(memory), 1h))), hello);
}

TEST_P(datagram_test, is_not_lost_by_a_cancellation) {
    auto s = bound();
    for (bool const came_before : {false, true}) {
        record_of<async_receive> received;
        auto operation = plumb::connect(async_receive(s, buffer(memory)), recorder(received));
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
        if (came_before) {
            ASSERT_TRUE(s.send(bytes_of(hello), s.local().value()));
        }
        operation.cancel();
        ASSERT_TRUE(drive_until([&] { return received.done(); }));
        if (!came_before) {
            ASSERT_TRUE(s.send(bytes_of(hello), s.local().value()));
        }
        if (!*received.value) {
            EXPECT_EQ(received.value->error(), std::errc::operation_canceled);
            received = {};
            operation.reset();
            (void)operation.start();
            ASSERT_TRUE(drive_until([&] { return received.done(); }));
        }
        EXPECT_EQ(text(*received.value), hello);
        EXPECT_EQ((*received.value)->from, s.local().value());
    }
}

TEST_P(datagram_test, is_told_to_nobody_by_a_destroyed_receive) {
    auto s = bound();
    record_of<async_receive> received;
    {
        auto operation = plumb::connect(async_receive(s, buffer(memory)), recorder(received));
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
    }
    ASSERT_TRUE(s.send(bytes_of(hello), s.local().value()));
    settle();
    EXPECT_TRUE(received.untold());
    EXPECT_EQ(receive(s), hello);
}

TEST_P(datagram_test, never_ends_the_receive_of_an_older_socket_or_of_a_newer_one) {
    std::optional<datagram_socket_handle> first(bound());
    auto const where = first->local().value();
    auto const number = first->native();
    record_of<async_receive> older;
    auto operation = plumb::connect(async_receive(*first, buffer(memory)), recorder(older));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    ASSERT_TRUE(first->send(bytes_of("old"), where));
    ASSERT_TRUE(first->close());
    auto second = bound();
    EXPECT_EQ(second.native(), number) << "the number is used again";
    record_of<async_receive> newer;
    std::array<std::byte, 64> other;
    auto next = plumb::connect(async_receive(second, buffer(other)), recorder(newer));
    ASSERT_EQ(next.start(), io_status::pending);
    ASSERT_TRUE(drive_until([&] { return older.done(); }));
    settle();
    EXPECT_TRUE(newer.untold());
    ASSERT_TRUE(second.send(bytes_of("new"), second.local().value()));
    ASSERT_TRUE(drive_until([&] { return newer.done(); }));
    EXPECT_EQ(text(*newer.value), "new");
}

TEST_P(datagram_test, waits_for_room_with_a_unix_peer_and_is_refused_by_others_that_are_full) {
    auto to = bound(path("to"));
    auto from = open(unix_domain);
    ASSERT_TRUE(from.connect(path("to")));
    int sent = 0;
    while (from.try_write(bytes_of(hello))) {
        ASSERT_LT(++sent, 100'000) << "it takes everything";
    }
    ASSERT_GT(sent, 0);
    EXPECT_EQ(from.write(bytes_of(hello), 5ms).error(), std::errc::timed_out);
    EXPECT_EQ(complete(async_write(from, bytes_of(hello), 5ms)).error(), std::errc::timed_out);
    EXPECT_EQ(complete(async_send(from, bytes_of(hello), path("to"), 5ms)).error(),
              std::errc::timed_out);
    auto stranger = open(unix_domain);
    EXPECT_EQ(complete(async_send(stranger, bytes_of(hello), path("to"))).error(),
              std::errc::no_buffer_space);
    EXPECT_EQ(stranger.send(bytes_of(hello), path("to")).error(), std::errc::no_buffer_space);

    record_of<async_send> told;
    std::string const last = "last";
    auto sending = plumb::connect(async_send(from, bytes_of(last), path("to")), recorder(told));
    ASSERT_EQ(sending.start(), io_status::pending);
    settle();
    EXPECT_TRUE(told.untold());
    EXPECT_EQ(receive(to), hello);
    ASSERT_TRUE(drive_until([&] {
        // Some of the queue must be empty before there is room.
        return told.done() || !to.receive(buffer(memory), 0s);
    }));
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_TRUE(*told.value);
    std::string got;
    while (got != last) {
        auto const d = to.receive(buffer(memory), patience);
        ASSERT_TRUE(d) << d.error().message();
        got = text(d);
    }
}

TEST_P(datagram_test, socket_is_busy_with_one_receive_at_a_time) {
    auto s = bound();
    record_of<async_receive> received;
    auto operation = plumb::connect(async_receive(s, buffer(memory)), recorder(received));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_EQ(complete(async_receive(s, buffer(memory))).error(),
              std::errc::device_or_resource_busy);
    EXPECT_EQ(complete(async_read(s, buffer(memory))).error(), std::errc::device_or_resource_busy);
    EXPECT_TRUE(complete(async_send(s, bytes_of(hello), s.local().value()))) << "the other way";
    ASSERT_TRUE(drive_until([&] { return received.done(); }));
    EXPECT_EQ(text(*received.value), hello);
}

TEST_P(datagram_test, of_a_multicast_group_comes_to_its_members) {
    auto const loopback = ::if_nametoindex("lo");
    for (std::string const group : {"239.255.77.1", "ff01::4d01"}) {
        auto const anywhere =
            group.find(':') == std::string::npos ? endpoint::any_v4(0) : endpoint::any_v6(0);
        auto a = open(anywhere.family());
        if (!a.set_reuse_address(true) || !a.bind(anywhere)) {
            continue;
        }
        auto const where = endpoint::parse_address(group, a.local().value().port()).value();
        auto sender = open(anywhere.family());
        if (!a.join_multicast(where, loopback)) {
            continue;  // this system has no multicast
        }
        EXPECT_FALSE(a.join_multicast(where, loopback)) << "twice";
        auto b = open(anywhere.family());
        ASSERT_TRUE(b.set_reuse_address(true));
        ASSERT_TRUE(b.bind(anywhere.with_port(where.port())));
        ASSERT_TRUE(b.join_multicast(where, loopback));
        ASSERT_TRUE(sender.set_multicast_interface(loopback));
        auto const sent = complete(async_send(sender, bytes_of(hello), where));
        if (!sent) {
            continue;  // nor a way for it
        }
        EXPECT_EQ(receive(a), hello);
        EXPECT_EQ(receive(b), hello);
        EXPECT_TRUE(a.leave_multicast(where, loopback));
        EXPECT_FALSE(a.leave_multicast(where, loopback));
    }
    auto s = bound();
    EXPECT_FALSE(s.join_multicast(endpoint::loopback_v4(0))) << "no group";
}

TEST_P(datagram_test, to_all_needs_a_permission) {
    auto s = bound(endpoint::any_v4(0));
    auto const port = s.local().value().port();
    auto const all = endpoint::parse_address("127.255.255.255", port).value();
    EXPECT_EQ(s.send(bytes_of(hello), all).error(), std::errc::permission_denied);
    EXPECT_EQ(complete(async_send(s, bytes_of(hello), all)).error(), std::errc::permission_denied);
    ASSERT_TRUE(s.set_broadcast(true));
    ASSERT_TRUE(complete(async_send(s, bytes_of(hello), all)));
    EXPECT_EQ(receive(s), hello);
}

TEST_P(datagram_test, of_another_family_cannot_be_sent) {
    auto s = bound();
    auto const elsewhere = endpoint::unix_path("/a/path/that/is/long").value();
    EXPECT_EQ(s.send(bytes_of(hello), elsewhere).error(), std::errc::address_family_not_supported);
    EXPECT_EQ(s.connect(endpoint::loopback_v6(1)).error(), std::errc::address_family_not_supported);
    EXPECT_EQ(s.peer().error(), std::errc::not_connected);
    EXPECT_EQ(s.write(bytes_of(hello)).error(), std::errc::destination_address_required);
}

TEST_P(datagram_test, costs_no_allocation) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated network keeps datagrams on the heap";
    }
    auto s = bound();
    auto const where = s.local().value();
    auto const cycle = [&] {
        record_of<async_receive> received;
        auto receiving = plumb::connect(async_receive(s, buffer(memory), 1h), recorder(received));
        (void)receiving.start();
        record_of<async_send> sent;
        auto sending = plumb::connect(async_send(s, bytes_of(hello), where, 1h), recorder(sent));
        (void)sending.start();
        while (!received.done() || !sent.done()) {
            ASSERT_TRUE(multiplexer().run());
        }
        auto canceled = plumb::connect(async_receive(s, buffer(memory)), recorder(received = {}));
        (void)canceled.start();
        canceled.cancel();
        while (!received.done()) {
            ASSERT_TRUE(multiplexer().run());
        }
    };
    cycle();
    auto const before = heap_allocations();
    for (int i = 0; i < 100; ++i) {
        cycle();
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
}

TEST_P(datagram_test, a_closed_socket_is_an_error) {
    datagram_socket_handle s;
    EXPECT_FALSE(s.is_open());
    EXPECT_EQ(s.kind(), handle_kind::datagram_socket);
    EXPECT_EQ(s.receive(buffer(memory), 0s).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(s.send(bytes_of(hello), endpoint::loopback_v4(1)).error(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(s.bind(endpoint::loopback_v4(0)).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(s.local().error(), std::errc::bad_file_descriptor);
}

}  // namespace
}  // namespace plumb::test
