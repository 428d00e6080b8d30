// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

// The simulated system beside the real one: each test runs on both and expects what Linux does.
namespace plumb::sim {
namespace {

using platform::poll_event;
using platform::socket_option;

constexpr std::int64_t soon = 5'000'000'000;

std::string name_of(outcome o) {
    return o >= 0 ? std::to_string(o) : "\"" + platform::error_of(o).message() + "\"";
}

outcome code(std::errc e) { return failed_with(e); }

/// The system that a test runs on, and calls to it that are short to write. Closes what was opened.
class machine {
public:
    explicit machine(bool simulated, world::options const& o = {}) {
        if (simulated) {
            world_.emplace(1, o);
        }
        poller_ = os().open_poller();
    }
    machine(machine const&) = delete;
    machine& operator=(machine const&) = delete;
    ~machine() {
        for (auto const h : std::vector(open_)) {
            close(h);
        }
        os().close_poller(poller_);
    }

    static platform::seam const& os() { return platform::os(); }

    struct two {
        native_handle first;
        native_handle second;
    };
    two pipe() { return both(os().open_pipe); }
    two socket_pair() { return both(os().open_socket_pair); }
    native_handle socket(endpoint::family_type f = endpoint::family_type::ipv4) {
        return opened(os().open_socket(handle_kind::stream_socket, f));
    }
    native_handle opened(outcome h) {
        EXPECT_GE(h, 0) << name_of(h);
        open_.push_back(h);
        return h;
    }
    outcome close(native_handle h) {
        std::erase(open_, h);
        return os().close(h);
    }

    /// A socket that listens on loopback.
    native_handle listener(int backlog = 16, endpoint const& where = endpoint::loopback_v4(0)) {
        auto const l = socket(where.family());
        EXPECT_EQ(os().set_option(l, socket_option::reuse_address, 1), 0);
        EXPECT_EQ(os().bind(l, where), 0);
        EXPECT_EQ(os().listen(l, backlog), 0);
        return l;
    }
    static endpoint local(native_handle h) {
        endpoint e;
        EXPECT_EQ(os().local_endpoint(h, e), 0);
        return e;
    }
    /// Connects and waits for the outcome.
    static outcome connect(native_handle h, endpoint const& where) {
        auto const begun = os().connect(h, where);
        if (begun != code(std::errc::operation_in_progress)) {
            return begun;
        }
        EXPECT_NE(os().await_ready(h, platform::writable, soon), 0);
        return os().connect_outcome(h);
    }
    native_handle accept(native_handle l) {
        EXPECT_NE(os().await_ready(l, platform::readable, soon), 0);
        return opened(os().accept(l));
    }
    two tcp_pair() {
        auto const l = listener();
        auto const client = socket();
        EXPECT_EQ(connect(client, local(l)), 0);
        auto const server = accept(l);
        close(l);
        return {client, server};
    }

    static outcome write(native_handle h, std::string const& text,
                         handle_kind k = handle_kind::stream_socket) {
        const_buffer const b(text.data(), text.size());
        return os().write(h, k, &b, 1);
    }
    /// What is read; an error as text.
    static std::string read(native_handle h, handle_kind k = handle_kind::stream_socket,
                            std::size_t most = 100'000) {
        std::string text(most, '\0');
        buffer const b(text.data(), text.size());
        auto const n = os().read(h, k, &b, 1);
        if (n < 0) {
            return name_of(n);
        }
        text.resize(static_cast<std::size_t>(n));
        return text;
    }
    /// Waits for the peer's doings to arrive, then reads.
    static std::string read_soon(native_handle h) {
        EXPECT_NE(os().await_ready(h, platform::readable, soon), 0);
        return read(h);
    }
    static bool ready(native_handle h, std::uint32_t what) {
        return os().await_ready(h, what, 0) != 0;
    }

    outcome watch(native_handle h, std::uint64_t key) { return os().poller_add(poller_, h, key); }
    outcome unwatch(native_handle h) { return os().poller_remove(poller_, h); }
    /// What a report tells; which end it is doesn't matter.
    static std::uint32_t meaning(std::uint32_t ready) {
        auto const all = platform::implied(ready);
        bool const ends = (all & platform::hung_up) != 0;
        return (all & ~std::uint32_t{platform::hung_up}) | (ends ? platform::read_ended : 0u);
    }
    /// What is reported without waiting, by key.
    std::map<std::uint64_t, std::uint32_t> events(std::int64_t timeout = 0) {
        std::map<std::uint64_t, std::uint32_t> all;
        std::array<poll_event, 8> some;
        for (;;) {
            auto const n = os().poller_wait(poller_, some.data(), some.size(), timeout);
            EXPECT_GE(n, 0) << name_of(n);
            if (n <= 0) {
                return all;
            }
            timeout = 0;
            for (outcome i = 0; i < n; ++i) {
                poll_event const& e = some[static_cast<std::size_t>(i)];
                if (e.key() != platform::no_key) {
                    all[e.key()] |= meaning(e.ready());
                }
            }
        }
    }
    [[nodiscard]] native_handle poller() const { return poller_; }

    /// Whether the condition comes true while the peer's doings arrive.
    template <class Condition>
    bool eventually(Condition condition) {
        auto const end = os().steady_now() + soon;
        auto const idle = os().open_poller();
        bool held = false;
        while (!(held = condition()) && os().steady_now() < end) {
            poll_event none;
            os().poller_wait(idle, &none, 1, 1'000'000);
        }
        os().close_poller(idle);
        return held;
    }

private:
    two both(outcome (*open)(native_handle (&)[2]) noexcept) {
        native_handle ends[2]{};
        EXPECT_EQ(open(ends), 0);
        open_.insert(open_.end(), std::begin(ends), std::end(ends));
        return {ends[0], ends[1]};
    }

    std::optional<world> world_;
    std::vector<native_handle> open_;
    native_handle poller_;
};

constexpr std::uint32_t in = platform::readable;
constexpr std::uint32_t out = platform::writable;
constexpr std::uint32_t hup = platform::read_ended;
using events = std::map<std::uint64_t, std::uint32_t>;

/// Some containers have none.
bool has_ipv6() {
    machine m(false);
    return m.os().bind(m.socket(endpoint::family_type::ipv6), endpoint::loopback_v6(0)) == 0;
}

class both_systems : public ::testing::TestWithParam<bool> {
protected:
    [[nodiscard]] static bool simulated() { return GetParam(); }
    machine m{GetParam()};
    platform::seam const& os = platform::os();
};

INSTANTIATE_TEST_SUITE_P(systems, both_systems, ::testing::Bool(),
                         [](auto const& of) { return std::string(of.param ? "sim" : "linux"); });

// Pipes.

constexpr auto as_pipe = handle_kind::pipe;

TEST_P(both_systems, a_pipe_carries_bytes_to_its_end) {
    auto const [reader, writer] = m.pipe();
    EXPECT_EQ(m.read(reader, as_pipe), name_of(code(std::errc::resource_unavailable_try_again)));
    EXPECT_EQ(m.write(writer, "hello", as_pipe), 5);
    EXPECT_EQ(m.read(reader, as_pipe, 2), "he");
    EXPECT_EQ(m.close(writer), 0);
    EXPECT_EQ(m.read(reader, as_pipe), "llo");
    EXPECT_EQ(m.read(reader, as_pipe), "");
    EXPECT_EQ(m.read(reader, as_pipe), "");
}

TEST_P(both_systems, a_pipe_without_reader_is_broken) {
    auto const [reader, writer] = m.pipe();
    EXPECT_EQ(m.write(writer, "x", as_pipe), 1);
    EXPECT_EQ(m.close(reader), 0);
    EXPECT_EQ(m.write(writer, "x", as_pipe), code(std::errc::broken_pipe));
    EXPECT_TRUE(m.ready(writer, out));
}

TEST_P(both_systems, a_pipe_is_full_when_its_pages_are) {
    auto const [reader, writer] = m.pipe();
    EXPECT_EQ(m.write(writer, std::string(70'000, 'a'), as_pipe), 65'536);
    EXPECT_EQ(m.write(writer, "x", as_pipe), code(std::errc::resource_unavailable_try_again));
    EXPECT_FALSE(m.ready(writer, out));
    EXPECT_EQ(m.read(reader, as_pipe, 4095).size(), 4095u);
    EXPECT_EQ(m.write(writer, "x", as_pipe), code(std::errc::resource_unavailable_try_again));
    EXPECT_EQ(m.read(reader, as_pipe, 1).size(), 1u);
    EXPECT_TRUE(m.ready(writer, out));
    EXPECT_EQ(m.write(writer, "x", as_pipe), 1);
    EXPECT_EQ(m.write(writer, std::string(4095, 'b'), as_pipe), 4095) << "behind what is there";
    EXPECT_EQ(m.write(writer, "x", as_pipe), code(std::errc::resource_unavailable_try_again));
}

TEST_P(both_systems, small_writes_to_a_pipe_move_all_or_nothing) {
    auto const [reader, writer] = m.pipe();
    EXPECT_EQ(m.write(writer, std::string(61'440 + 100, 'a'), as_pipe), 61'540);
    EXPECT_EQ(m.write(writer, std::string(4096, 'b'), as_pipe),
              code(std::errc::resource_unavailable_try_again));
    EXPECT_EQ(m.write(writer, std::string(5000, 'c'), as_pipe), 904) << "a large one is partial";
}

TEST_P(both_systems, the_ends_of_a_pipe_do_what_they_are_for) {
    auto const [reader, writer] = m.pipe();
    auto const bad = code(std::errc::bad_file_descriptor);
    EXPECT_EQ(m.write(reader, "x", as_pipe), bad);
    EXPECT_EQ(m.read(writer, as_pipe), name_of(bad));
    auto const no_socket = code(std::errc::not_a_socket);
    EXPECT_EQ(m.write(writer, "x"), no_socket);
    EXPECT_EQ(m.read(reader), name_of(no_socket));
    endpoint e;
    for (auto const h : {reader, writer}) {
        EXPECT_EQ(os.bind(h, e), no_socket);
        EXPECT_EQ(os.listen(h, 1), no_socket);
        EXPECT_EQ(os.accept(h), no_socket);
        EXPECT_EQ(os.connect(h, e), no_socket);
        EXPECT_EQ(os.shutdown_write(h), no_socket);
        EXPECT_EQ(os.set_option(h, socket_option::linger, 0), no_socket);
        EXPECT_EQ(os.local_endpoint(h, e), no_socket);
        EXPECT_EQ(os.peer_endpoint(h, e), no_socket);
    }
    EXPECT_EQ(os.connect_outcome(writer), no_socket);
}

TEST_P(both_systems, a_handle_that_is_closed_is_bad) {
    auto const [first, second] = m.socket_pair();
    EXPECT_EQ(m.close(first), 0);
    auto const bad = code(std::errc::bad_file_descriptor);
    endpoint e;
    EXPECT_EQ(os.close(first), bad);
    EXPECT_EQ(m.read(first), name_of(bad));
    EXPECT_EQ(m.write(first, "x"), bad);
    EXPECT_EQ(os.bind(first, e), bad);
    EXPECT_EQ(os.listen(first, 1), bad);
    EXPECT_EQ(os.accept(first), bad);
    EXPECT_EQ(os.connect(first, e), bad);
    EXPECT_EQ(os.connect_outcome(first), bad);
    EXPECT_EQ(os.shutdown_write(first), bad);
    EXPECT_EQ(os.set_option(first, socket_option::linger, 0), bad);
    EXPECT_EQ(os.local_endpoint(first, e), bad);
    EXPECT_EQ(os.peer_endpoint(first, e), bad);
    EXPECT_EQ(m.watch(first, 1), bad);
    EXPECT_EQ(m.unwatch(first), bad);
    EXPECT_TRUE(m.ready(first, in)) << "so that the next call tells";
    EXPECT_EQ(os.close(no_native_handle), bad);
}

// Socket pairs.

TEST_P(both_systems, a_socket_pair_ends_each_direction_by_itself) {
    auto const [a, b] = m.socket_pair();
    EXPECT_EQ(m.write(a, "to b"), 4);
    EXPECT_EQ(os.shutdown_write(a), 0);
    EXPECT_EQ(os.shutdown_write(a), 0);
    EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
    EXPECT_EQ(m.read(b), "to b");
    EXPECT_EQ(m.read(b), "");
    EXPECT_EQ(m.write(b, "to a"), 4);
    EXPECT_EQ(m.close(b), 0);
    EXPECT_EQ(m.read(a), "to a");
    EXPECT_EQ(m.read(a), "");
    EXPECT_EQ(os.shutdown_write(a), 0);
}

TEST_P(both_systems, a_socket_of_a_pair_that_is_closed_with_unread_bytes_resets_the_other) {
    auto const [a, b] = m.socket_pair();
    EXPECT_EQ(m.write(a, "unread"), 6);
    EXPECT_EQ(m.write(b, "sent before"), 11);
    EXPECT_EQ(m.close(b), 0);
    EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
    EXPECT_EQ(m.read(a), "sent before");
    EXPECT_EQ(m.read(a), name_of(code(std::errc::connection_reset)));
    EXPECT_EQ(m.read(a), "");
}

TEST_P(both_systems, a_socket_of_a_pair_is_unnamed) {
    auto const [a, b] = m.socket_pair();
    endpoint peer;
    EXPECT_EQ(m.local(a), endpoint::unix_unnamed());
    EXPECT_EQ(os.peer_endpoint(a, peer), 0);
    EXPECT_EQ(peer, endpoint::unix_unnamed());
    EXPECT_EQ(os.bind(a, endpoint::loopback_v4(0)), code(std::errc::invalid_argument));
    EXPECT_EQ(os.listen(a, 1), code(std::errc::invalid_argument));
    EXPECT_EQ(os.accept(a), code(std::errc::invalid_argument));
    EXPECT_EQ(os.connect(a, endpoint::loopback_v4(1)), code(std::errc::invalid_argument));
    EXPECT_EQ(os.connect_outcome(a), 0);
    EXPECT_EQ(os.set_option(a, socket_option::no_delay, 1),
              code(std::errc::operation_not_supported));
    EXPECT_EQ(os.set_option(a, socket_option::send_buffer, 10'000), 0);
    EXPECT_EQ(os.set_option(a, socket_option::linger, 0), 0);
}

TEST_P(both_systems, a_unix_socket_takes_a_name_once_and_no_other_kind_of_address) {
    constexpr auto unix_domain = endpoint::family_type::unix_domain;
    auto const a = m.socket(unix_domain);
    EXPECT_EQ(m.local(a), endpoint::unix_unnamed());
    EXPECT_EQ(os.bind(a, endpoint::loopback_v4(0)), code(std::errc::invalid_argument));
    EXPECT_EQ(os.listen(a, 1), code(std::errc::invalid_argument)) << "without a name";
    EXPECT_EQ(os.bind(a, endpoint::unix_unnamed()), 0);
    auto const name = m.local(a);
    EXPECT_EQ(name.abstract_name().size(), 5u);
    EXPECT_EQ(os.bind(a, *endpoint::unix_abstract("plumb other")),
              code(std::errc::invalid_argument));
    auto const b = m.socket(unix_domain);
    EXPECT_EQ(os.bind(b, name), code(std::errc::address_in_use));
    EXPECT_EQ(os.connect(b, name), code(std::errc::connection_refused)) << "it doesn't listen";
    auto const other = *endpoint::unix_path("/no/internet/address");
    EXPECT_EQ(os.bind(m.socket(), other), code(std::errc::address_family_not_supported));
    EXPECT_EQ(os.connect(m.socket(), other), code(std::errc::address_family_not_supported));
}

TEST_P(both_systems, a_unix_connection_is_there_before_it_is_accepted) {
    constexpr auto unix_domain = endpoint::family_type::unix_domain;
    auto const l = m.listener(0, endpoint::unix_unnamed());
    auto const client = m.socket(unix_domain);
    EXPECT_EQ(os.connect(client, m.local(l)), 0);
    EXPECT_EQ(m.write(client, "early"), 5);
    EXPECT_EQ(os.connect(m.socket(unix_domain), m.local(l)), code(std::errc::no_buffer_space));
    auto const server = m.accept(l);
    EXPECT_EQ(m.read(server), "early");
    EXPECT_EQ(m.local(server), m.local(l));
    EXPECT_EQ(os.connect(client, m.local(l)), code(std::errc::already_connected));
    EXPECT_EQ(os.set_option(server, socket_option::linger, 0), 0);
    EXPECT_EQ(m.close(server), 0);
    EXPECT_EQ(m.read(client), "") << "no reset where all was read";
    endpoint peer;
    EXPECT_EQ(os.peer_endpoint(client, peer), 0);
    EXPECT_EQ(peer, m.local(l));
}

TEST_P(both_systems, a_socket_is_full_until_a_good_part_was_read) {
    for (auto const& [a, b] : {m.socket_pair(), m.tcp_pair()}) {
        std::string const block(5000, 'x');
        std::size_t sent = 0;
        for (;;) {
            auto const n = m.write(a, block);
            if (n < 0) {
                ASSERT_EQ(n, code(std::errc::resource_unavailable_try_again));
                // What is under way may yet arrive and make room.
                if (os.await_ready(a, out, simulated() ? 0 : 20'000'000) == 0) {
                    break;
                }
                continue;
            }
            sent += static_cast<std::size_t>(n);
        }
        EXPECT_GE(sent, 60'000u);
        std::size_t got = m.read(b, handle_kind::stream_socket, 1).size();
        EXPECT_FALSE(m.ready(a, out)) << "one byte is no good part";
        while (got < sent) {
            auto const text = m.read_soon(b);
            ASSERT_EQ(text.find_first_not_of('x'), std::string::npos) << text;
            got += text.size();
        }
        EXPECT_EQ(got, sent);
        EXPECT_EQ(m.read(b), name_of(code(std::errc::resource_unavailable_try_again)));
        EXPECT_NE(os.await_ready(a, out, soon), 0);
    }
}

// TCP.

TEST_P(both_systems, a_connection_has_two_names) {
    auto const l = m.listener();
    auto const where = m.local(l);
    EXPECT_NE(where.port(), 0);
    EXPECT_EQ(where, endpoint::loopback_v4(where.port()));
    auto const client = m.socket();
    EXPECT_EQ(m.local(client), endpoint::any_v4(0));
    endpoint peer;
    EXPECT_EQ(os.peer_endpoint(client, peer), code(std::errc::not_connected));
    EXPECT_EQ(m.connect(client, where), 0);
    auto const server = m.accept(l);
    EXPECT_EQ(os.peer_endpoint(client, peer), 0);
    EXPECT_EQ(peer, where);
    EXPECT_EQ(os.peer_endpoint(server, peer), 0);
    EXPECT_EQ(peer, m.local(client));
    EXPECT_EQ(m.local(server), where);
    EXPECT_EQ(os.peer_endpoint(l, peer), code(std::errc::not_connected));
    EXPECT_EQ(os.accept(l), code(std::errc::resource_unavailable_try_again));
}

TEST_P(both_systems, the_unspecified_address_leads_to_loopback) {
    auto const l = m.listener(16, endpoint::any_v4(0));
    EXPECT_EQ(m.local(l), endpoint::any_v4(m.local(l).port()));
    auto const client = m.socket();
    EXPECT_EQ(m.connect(client, m.local(l)), 0);
    endpoint peer;
    EXPECT_EQ(os.peer_endpoint(client, peer), 0);
    EXPECT_EQ(peer, endpoint::loopback_v4(m.local(l).port()));
    EXPECT_EQ(m.local(m.accept(l)), peer);
}

TEST_P(both_systems, a_listener_on_any_ipv6_address_takes_ipv4_connections) {
    if (!simulated() && !has_ipv6()) {
        GTEST_SKIP() << "this machine has no IPv6";
    }
    constexpr auto v6 = endpoint::family_type::ipv6;
    auto const l = m.listener(16, endpoint::any_v6(0));
    auto const port = m.local(l).port();
    EXPECT_EQ(m.local(l), endpoint::any_v6(port));
    auto const client = m.socket();
    EXPECT_EQ(m.connect(client, endpoint::loopback_v4(port)), 0);
    endpoint peer;
    EXPECT_EQ(os.peer_endpoint(m.accept(l), peer), 0);
    auto const mapped = endpoint::parse_address("::ffff:127.0.0.1", m.local(client).port()).value();
    EXPECT_EQ(peer, mapped);
    auto const other = m.socket(v6);
    EXPECT_EQ(m.connect(other, mapped.with_port(port)), 0);
    EXPECT_EQ(os.peer_endpoint(other, peer), 0);
    EXPECT_EQ(peer, mapped.with_port(port));
    auto const third = m.socket(v6);
    EXPECT_EQ(m.connect(third, endpoint::loopback_v6(port)), 0);
    EXPECT_EQ(m.local(third), endpoint::loopback_v6(m.local(third).port()));
    auto const taken = m.socket();
    EXPECT_EQ(os.bind(taken, endpoint::any_v4(port)), code(std::errc::address_in_use));
}

TEST_P(both_systems, an_address_of_another_family_is_refused) {
    if (!simulated() && !has_ipv6()) {
        GTEST_SKIP() << "this machine has no IPv6";
    }
    constexpr auto v6 = endpoint::family_type::ipv6;
    EXPECT_EQ(os.bind(m.socket(), endpoint::loopback_v6(0)),
              code(std::errc::address_family_not_supported));
    EXPECT_EQ(os.connect(m.socket(), endpoint::loopback_v6(1)),
              code(std::errc::address_family_not_supported));
    EXPECT_EQ(os.bind(m.socket(v6), endpoint::loopback_v4(0)), code(std::errc::invalid_argument));
    EXPECT_EQ(os.connect(m.socket(v6), endpoint::loopback_v4(1)),
              code(std::errc::invalid_argument));
}

TEST_P(both_systems, a_port_is_one_sockets) {
    auto const l = m.listener();
    auto const where = m.local(l);
    auto const in_use = code(std::errc::address_in_use);
    auto const second = m.socket();
    EXPECT_EQ(os.set_option(second, socket_option::reuse_address, 1), 0);
    EXPECT_EQ(os.bind(second, where), in_use);
    EXPECT_EQ(os.bind(second, endpoint::any_v4(where.port())), in_use);
    EXPECT_EQ(os.bind(second, endpoint::parse_address("127.0.0.2", where.port()).value()), 0);
    EXPECT_EQ(os.bind(second, endpoint::loopback_v4(0)), code(std::errc::invalid_argument));
    EXPECT_EQ(os.listen(second, 1), 0);

    EXPECT_EQ(m.close(l), 0);
    auto const third = m.socket();
    auto const fourth = m.socket();
    for (auto const s : {third, fourth}) {
        EXPECT_EQ(os.set_option(s, socket_option::reuse_address, 1), 0);
        EXPECT_EQ(os.bind(s, where), 0) << "that nobody listens on";
    }
    EXPECT_EQ(os.listen(third, 1), 0);
    EXPECT_EQ(os.listen(fourth, 1), in_use);
    EXPECT_EQ(os.listen(third, 2), 0) << "again";
}

TEST_P(both_systems, a_port_is_shared_by_those_that_all_want_to) {
    auto const first = m.socket();
    EXPECT_EQ(os.set_option(first, socket_option::reuse_port, 1), 0);
    EXPECT_EQ(os.bind(first, endpoint::loopback_v4(0)), 0);
    EXPECT_EQ(os.listen(first, 64), 0);
    auto const where = m.local(first);
    auto const second = m.socket();
    EXPECT_EQ(os.set_option(second, socket_option::reuse_port, 1), 0);
    EXPECT_EQ(os.bind(second, where), 0);
    EXPECT_EQ(os.listen(second, 64), 0);
    EXPECT_EQ(os.bind(m.socket(), where), code(std::errc::address_in_use));
    int taken[2]{};
    for (int i = 0; i < 40; ++i) {
        EXPECT_EQ(m.connect(m.socket(), where), 0);
    }
    native_handle const listeners[]{first, second};
    EXPECT_TRUE(m.eventually([&] {
        for (int i = 0; i < 2; ++i) {
            for (outcome h = 0; (h = os.accept(listeners[i])) >= 0; ++taken[i]) {
                m.opened(h);
            }
        }
        return taken[0] + taken[1] == 40;
    }));
    EXPECT_GT(taken[0], 0);
    EXPECT_GT(taken[1], 0);
}

TEST_P(both_systems, listening_without_a_port_takes_a_free_one) {
    auto const s = m.socket();
    EXPECT_EQ(os.accept(s), code(std::errc::invalid_argument));
    EXPECT_EQ(os.listen(s, 1), 0);
    EXPECT_NE(m.local(s).port(), 0);
    EXPECT_EQ(m.connect(m.socket(), m.local(s)), 0);
    auto const connected = m.tcp_pair().first;
    EXPECT_EQ(os.listen(connected, 1), code(std::errc::invalid_argument));
    EXPECT_EQ(os.accept(connected), code(std::errc::invalid_argument));
}

TEST_P(both_systems, nobody_listening_refuses) {
    auto const l = m.listener();
    auto const where = m.local(l);
    m.close(l);
    auto const s = m.socket();
    EXPECT_EQ(os.connect(s, where), code(std::errc::operation_in_progress));
    EXPECT_NE(os.await_ready(s, out, soon), 0);
    EXPECT_EQ(os.connect_outcome(s), code(std::errc::connection_refused));
    EXPECT_EQ(os.connect_outcome(s), 0) << "told once";
    EXPECT_EQ(m.read(s), "");
    EXPECT_EQ(m.write(s, "x"), code(std::errc::broken_pipe));
    EXPECT_EQ(os.connect(s, where), code(std::errc::connection_aborted));
    EXPECT_EQ(m.connect(s, where), code(std::errc::connection_refused)) << "anew";
}

TEST_P(both_systems, a_socket_connects_once) {
    auto const l = m.listener();
    auto const s = m.socket();
    EXPECT_EQ(os.connect(s, m.local(l)), code(std::errc::operation_in_progress));
    EXPECT_NE(os.await_ready(s, out, soon), 0);
    EXPECT_EQ(os.connect_outcome(s), 0);
    EXPECT_EQ(os.connect(s, m.local(l)), 0) << "tells once that it is done";
    EXPECT_EQ(os.connect(s, m.local(l)), code(std::errc::already_connected));
    EXPECT_EQ(os.connect(l, m.local(l)), code(std::errc::already_connected));
    EXPECT_EQ(os.connect(m.accept(l), m.local(l)), code(std::errc::already_connected));
    EXPECT_EQ(os.bind(s, endpoint::loopback_v4(0)), code(std::errc::invalid_argument));
}

TEST_P(both_systems, a_full_backlog_does_not_answer_until_one_is_accepted) {
    auto const l = m.listener(1);
    EXPECT_EQ(m.connect(m.socket(), m.local(l)), 0);
    EXPECT_EQ(m.connect(m.socket(), m.local(l)), 0) << "one more than the backlog";
    auto const third = m.socket();
    EXPECT_EQ(os.connect(third, m.local(l)), code(std::errc::operation_in_progress));
    EXPECT_EQ(os.await_ready(third, out, 1'000'000), 0);
    EXPECT_EQ(os.connect_outcome(third), code(std::errc::resource_unavailable_try_again));
    EXPECT_EQ(os.connect(third, m.local(l)), code(std::errc::connection_already_in_progress));
    EXPECT_EQ(m.read(third), name_of(code(std::errc::resource_unavailable_try_again)));
    EXPECT_EQ(m.write(third, "x"), code(std::errc::resource_unavailable_try_again));
    m.accept(l);
    EXPECT_NE(os.await_ready(third, out, soon), 0);
    EXPECT_EQ(os.connect_outcome(third), 0);
}

TEST_P(both_systems, a_socket_that_is_not_connected_moves_nothing) {
    auto const s = m.socket();
    EXPECT_EQ(m.read(s), name_of(code(std::errc::not_connected)));
    EXPECT_EQ(m.write(s, "x"), code(std::errc::broken_pipe));
    EXPECT_EQ(os.shutdown_write(s), code(std::errc::not_connected));
    auto const l = m.listener();
    EXPECT_EQ(m.read(l), name_of(code(std::errc::not_connected)));
    EXPECT_EQ(m.write(l, "x"), code(std::errc::broken_pipe));
}

TEST_P(both_systems, a_connection_ends_each_direction_by_itself) {
    auto const [a, b] = m.tcp_pair();
    EXPECT_EQ(m.write(a, "to b"), 4);
    EXPECT_EQ(os.shutdown_write(a), 0);
    EXPECT_EQ(os.shutdown_write(a), 0);
    EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
    EXPECT_EQ(m.read_soon(b), "to b");
    EXPECT_EQ(m.read_soon(b), "");
    EXPECT_EQ(m.write(b, "to a"), 4);
    EXPECT_EQ(m.read_soon(a), "to a");
    EXPECT_EQ(os.shutdown_write(b), 0);
    EXPECT_EQ(m.read_soon(a), "");
    endpoint e;
    for (auto const h : {a, b}) {
        EXPECT_TRUE(
            m.eventually([&] { return os.shutdown_write(h) == code(std::errc::not_connected); }));
        EXPECT_EQ(os.peer_endpoint(h, e), code(std::errc::not_connected));
        EXPECT_EQ(m.write(h, "x"), code(std::errc::broken_pipe));
        EXPECT_EQ(m.read(h), "");
    }
}

TEST_P(both_systems, writing_to_a_peer_that_has_closed_is_told_by_the_second_write) {
    auto const [a, b] = m.tcp_pair();
    EXPECT_EQ(m.close(b), 0);
    EXPECT_EQ(m.read_soon(a), "");
    m.watch(a, 1);
    m.events();
    EXPECT_EQ(m.write(a, "x"), 1);
    EXPECT_EQ(m.events(soon), (events{{1, in | out | hup}})) << "the answer was a reset";
    EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
    EXPECT_EQ(m.read(a), "");
}

TEST_P(both_systems, closing_with_unread_bytes_resets) {
    for (bool const by_reading : {true, false}) {
        auto const [a, b] = m.tcp_pair();
        EXPECT_EQ(m.write(b, "sent before"), 11);
        EXPECT_EQ(m.write(a, "unread"), 6);
        EXPECT_NE(os.await_ready(b, in, soon), 0);
        EXPECT_NE(os.await_ready(a, in, soon), 0);
        m.watch(a, 1);
        m.events();
        EXPECT_EQ(m.close(b), 0);
        EXPECT_EQ(m.events(soon), (events{{1, in | out | hup}}));
        if (by_reading) {
            EXPECT_EQ(m.read(a), "sent before");
            EXPECT_EQ(m.read(a), name_of(code(std::errc::connection_reset)));
            EXPECT_EQ(m.read(a), "");
            EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
        } else {
            EXPECT_EQ(m.write(a, "x"), code(std::errc::connection_reset));
            EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
            EXPECT_EQ(m.read(a), "sent before");
            EXPECT_EQ(m.read(a), "");
        }
        endpoint e;
        EXPECT_EQ(os.peer_endpoint(a, e), code(std::errc::not_connected));
        EXPECT_EQ(os.shutdown_write(a), code(std::errc::not_connected));
        EXPECT_EQ(m.close(a), 0);
    }
}

TEST_P(both_systems, closing_without_linger_resets) {
    auto const [a, b] = m.tcp_pair();
    EXPECT_EQ(os.set_option(b, socket_option::linger, 0), 0);
    EXPECT_EQ(m.write(b, "sent before"), 11);
    EXPECT_NE(os.await_ready(a, in, soon), 0);
    EXPECT_EQ(m.close(b), 0);
    EXPECT_EQ(m.read(a), "sent before");
    EXPECT_EQ(m.read_soon(a), name_of(code(std::errc::connection_reset)));
    EXPECT_EQ(m.read(a), "");
}

TEST_P(both_systems, an_end_that_came_before_the_reset_hides_it_from_reads) {
    auto const [a, b] = m.tcp_pair();
    EXPECT_EQ(os.set_option(b, socket_option::linger, 0), 0);
    EXPECT_EQ(os.shutdown_write(b), 0);
    EXPECT_EQ(m.read_soon(a), "");
    m.watch(a, 1);
    m.events();
    EXPECT_EQ(m.close(b), 0);
    EXPECT_EQ(m.events(soon), (events{{1, in | out | hup}}));
    EXPECT_EQ(m.read(a), "");
    EXPECT_EQ(m.write(a, "x"), code(std::errc::broken_pipe));
}

TEST_P(both_systems, a_listener_that_is_closed_resets_what_nobody_accepted) {
    auto const l = m.listener();
    auto const client = m.socket();
    EXPECT_EQ(m.connect(client, m.local(l)), 0);
    EXPECT_NE(os.await_ready(l, in, soon), 0);
    EXPECT_EQ(m.close(l), 0);
    EXPECT_EQ(m.read_soon(client), name_of(code(std::errc::connection_reset)));
}

TEST_P(both_systems, what_came_before_a_connection_is_accepted_is_kept) {
    auto const l = m.listener();
    auto const client = m.socket();
    EXPECT_EQ(m.connect(client, m.local(l)), 0);
    EXPECT_EQ(m.write(client, "early"), 5);
    EXPECT_EQ(m.close(client), 0);
    auto const server = m.accept(l);
    EXPECT_EQ(m.read_soon(server), "early");
    EXPECT_EQ(m.read_soon(server), "");
}

TEST_P(both_systems, options_are_accepted) {
    auto const s = m.socket();
    for (auto const o :
         {socket_option::no_delay, socket_option::reuse_address, socket_option::reuse_port,
          socket_option::send_buffer, socket_option::receive_buffer, socket_option::linger}) {
        EXPECT_EQ(os.set_option(s, o, 1), 0);
    }
}

// Pollers.

TEST_P(both_systems, a_poller_tells_first_what_a_handle_is_ready_for) {
    auto const [a, b] = m.socket_pair();
    EXPECT_EQ(m.watch(a, 1), 0);
    EXPECT_EQ(m.write(b, "x"), 1);
    EXPECT_EQ(m.watch(b, 2), 0);
    EXPECT_EQ(m.watch(b, 3), code(std::errc::file_exists));
    EXPECT_EQ(m.events(), (events{{1, in | out}, {2, out}}));
    EXPECT_EQ(m.events(), events{}) << "once";
    auto const [reader, writer] = m.pipe();
    EXPECT_EQ(m.watch(reader, 4), 0);
    EXPECT_EQ(m.watch(writer, 5), 0);
    EXPECT_EQ(m.events(), (events{{5, out}}));
    auto const l = m.listener();
    EXPECT_EQ(m.watch(l, 6), 0);
    EXPECT_EQ(m.watch(m.socket(), 7), 0);
    EXPECT_EQ(m.events(), (events{{7, in | out | hup}}))
        << "a socket that isn't connected is hung up";
}

TEST_P(both_systems, a_poller_tells_each_change_once) {
    auto const [reader, writer] = m.pipe();
    m.watch(reader, 1);
    m.watch(writer, 2);
    EXPECT_EQ(m.events(), (events{{2, out}}));
    m.write(writer, "a", as_pipe);
    m.write(writer, "b", as_pipe);
    EXPECT_EQ(m.events(), (events{{1, in}}));
    EXPECT_EQ(m.events(), events{}) << "though it is still readable";
    m.write(writer, "c", as_pipe);
    EXPECT_EQ(m.events(), (events{{1, in}})) << "more bytes are a change";
    m.write(writer, "d", as_pipe);
    EXPECT_EQ(m.read(reader, as_pipe), "abcd");
    EXPECT_EQ(m.events(), events{}) << "what is over is not told";
    m.write(writer, std::string(65'536, 'x'), as_pipe);
    EXPECT_EQ(m.events(), (events{{1, in}}));
    m.read(reader, as_pipe, 4096);
    EXPECT_EQ(m.events(), (events{{2, out}}));
    m.close(writer);
    EXPECT_EQ(m.events(), (events{{1, in | out | hup}}));
    EXPECT_EQ(m.events(), events{});
}

TEST_P(both_systems, a_poller_tells_of_ends) {
    auto const [a, b] = m.socket_pair();
    m.watch(a, 1);
    EXPECT_EQ(m.events(), (events{{1, out}}));
    os.shutdown_write(b);
    EXPECT_EQ(m.events(), (events{{1, in | out | hup}}));
    m.close(b);
    EXPECT_EQ(m.events(), (events{{1, in | out | hup}}));
    auto const [reader, writer] = m.pipe();
    m.watch(writer, 2);
    m.events();
    m.close(reader);
    EXPECT_EQ(m.events(), (events{{2, in | out | hup}}));
}

TEST_P(both_systems, a_poller_tells_of_connections) {
    auto const l = m.listener();
    m.watch(l, 1);
    EXPECT_EQ(m.events(), events{});
    auto const first = m.socket();
    EXPECT_EQ(m.connect(first, m.local(l)), 0);
    EXPECT_EQ(m.events(soon), (events{{1, in}}));
    auto const second = m.socket();
    EXPECT_EQ(m.connect(second, m.local(l)), 0);
    EXPECT_EQ(m.events(soon), (events{{1, in}})) << "each";
    m.accept(l);
    m.accept(l);
    EXPECT_EQ(m.events(), events{});
    m.watch(second, 2);
    EXPECT_EQ(m.events(), (events{{2, out}}));
}

TEST_P(both_systems, a_poller_forgets_what_is_removed_or_closed) {
    auto const [a, b] = m.socket_pair();
    m.watch(a, 1);
    m.watch(b, 2);
    EXPECT_EQ(m.unwatch(a), 0);
    EXPECT_EQ(m.unwatch(a), code(std::errc::no_such_file_or_directory));
    m.close(b);
    EXPECT_EQ(m.events(), events{});
    EXPECT_EQ(m.watch(a, 3), 0);
    EXPECT_EQ(m.events(), (events{{3, in | out | hup}}));
}

TEST_P(both_systems, a_wake_up_ends_the_next_wait) {
    auto const before = os.steady_now();
    os.poller_wake(m.poller());
    EXPECT_EQ(m.events(soon), events{});
    EXPECT_LT(os.steady_now() - before, soon);
    poll_event e;
    EXPECT_EQ(os.poller_wait(m.poller(), &e, 1, 1000), 0) << "but one";
}

TEST_P(both_systems, one_event_at_a_time_gives_all) {
    std::vector<machine::two> pairs;
    for (std::uint64_t i = 0; i < 20; ++i) {
        pairs.push_back(m.pipe());
        m.watch(pairs.back().first, i + 1);
        m.write(pairs.back().second, "a", as_pipe);
        m.write(pairs.back().second, "b", as_pipe);
    }
    events told;
    poll_event e;
    while (os.poller_wait(m.poller(), &e, 1, 0) == 1) {
        EXPECT_TRUE(told.emplace(e.key(), e.ready()).second) << "told twice";
    }
    EXPECT_EQ(told.size(), pairs.size());
    EXPECT_EQ(os.poller_wait(m.poller(), &e, 0, 0), code(std::errc::invalid_argument));
}

// At random.

struct pipes {
    static constexpr auto kind = handle_kind::pipe;
    static constexpr std::size_t most_unread = SIZE_MAX;  // full is the same for both
    static machine::two open(machine& m) { return m.pipe(); }
};

struct socket_pairs {
    static constexpr auto kind = handle_kind::stream_socket;
    static constexpr std::size_t most_unread = 6000;
    static machine::two open(machine& m) { return m.socket_pair(); }
};

/// Does what `seed` says. @return each step with its outcome
template <class Streams>
std::vector<std::string> run_script(bool simulated, std::uint64_t seed, std::vector<events>& told) {
    machine m(simulated);
    auto const& os = m.os();
    std::mt19937_64 pick(seed);
    auto const below = [&](std::uint64_t n) { return static_cast<std::size_t>(pick() % n); };
    struct end {
        native_handle h;
        std::uint64_t key;
        std::size_t* unread_by_peer;
        std::size_t* unread;
    };
    std::vector<end> ends;
    std::vector<std::unique_ptr<std::size_t>> counts;
    std::vector<std::string> trace;
    std::string text;
    for (unsigned char c = 0; text.size() < 100'000; ++c) {
        text += static_cast<char>(c);
    }
    auto const list = [&]<class Buffer>(std::size_t n, std::vector<Buffer>& to, char* at) {
        while (n != 0) {
            auto const part = below(3) == 0 ? 1 + below(n) : n;
            to.emplace_back(at, part);
            at += part;
            n -= part;
        }
    };
    auto const size = [&]() -> std::size_t {
        switch (below(4)) {
        case 0:
            return 1 + below(20);
        case 1:
            return 4090 + below(12);
        case 2:
            return 1 + below(5000);
        default:
            return 1 + below(70'000);
        }
    };
    for (std::uint64_t step = 0; step < 400; ++step) {
        if (ends.size() < 2 || (ends.size() < 8 && below(40) == 0)) {
            auto const [first, second] = Streams::open(m);
            for (int i = 0; i < 2; ++i) {
                counts.push_back(std::make_unique<std::size_t>(0));
            }
            auto* const one = counts.end()[-1].get();
            auto* const two = counts.end()[-2].get();
            ends.push_back({first, step * 2, one, two});
            ends.push_back({second, step * 2 + 1, two, one});
            trace.push_back("open");
        }
        auto const at = below(ends.size());
        end& e = ends[at];
        auto const did = [&](std::string const& what, std::string const& gave) {
            trace.push_back(what + " " + std::to_string(e.key) + " = " + gave);
        };
        switch (below(12)) {
        case 0:
        case 1:
        case 2: {
            auto const n = std::min(size(), Streams::most_unread -
                                                std::min(*e.unread_by_peer, Streams::most_unread));
            std::vector<const_buffer> b;
            list(n, b, text.data() + below(256));
            if (n != 0) {
                auto const moved = os.write(e.h, Streams::kind, b.data(), b.size());
                *e.unread_by_peer += moved > 0 ? static_cast<std::size_t>(moved) : 0;
                did("write " + std::to_string(n) + " to", name_of(moved));
            }
            break;
        }
        case 3:
        case 4:
        case 5: {
            std::string memory(size(), '\0');
            std::vector<buffer> b;
            list(memory.size(), b, memory.data());
            auto const moved = os.read(e.h, Streams::kind, b.data(), b.size());
            memory.resize(moved > 0 ? static_cast<std::size_t>(moved) : 0);
            *e.unread -= memory.size();
            did("read of", name_of(moved) + " " + std::to_string(std::hash<std::string>()(memory)));
            break;
        }
        case 6:
            did("readable", std::to_string(m.ready(e.h, in)));
            break;
        case 7:
            did("writable", std::to_string(m.ready(e.h, out)));
            break;
        case 8:
            did("watch", name_of(m.watch(e.h, e.key)));
            break;
        case 9:
            if (below(4) == 0) {
                did("unwatch", name_of(m.unwatch(e.h)));
            }
            break;
        case 10:
            if (below(8) == 0) {
                did("shutdown of", name_of(os.shutdown_write(e.h)));
            } else if (below(8) == 0) {
                endpoint address;
                did("misuse of", name_of(os.accept(e.h)) + name_of(os.listen(e.h, 1)) +
                                     name_of(os.bind(e.h, address)) +
                                     name_of(os.connect(e.h, address)) +
                                     name_of(os.local_endpoint(e.h, address)) +
                                     name_of(os.peer_endpoint(e.h, address)) +
                                     name_of(os.set_option(e.h, socket_option::no_delay, 1)));
            } else if (below(8) == 0) {
                did("close of", name_of(m.close(e.h)) + name_of(os.close(e.h)));
                ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(at));
            }
            break;
        default:
            told.push_back(m.events());
            trace.push_back("wait");
            break;
        }
    }
    return trace;
}

template <class Streams>
class random_scripts : public ::testing::Test {};
using streams = ::testing::Types<pipes, socket_pairs>;
TYPED_TEST_SUITE(random_scripts, streams);

TYPED_TEST(random_scripts, give_step_by_step_what_they_give_on_linux) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        std::vector<events> real_told;
        std::vector<events> sim_told;
        auto const real = run_script<TypeParam>(false, seed, real_told);
        auto const sim = run_script<TypeParam>(true, seed, sim_told);
        for (std::size_t i = 0; i < real.size(); ++i) {
            ASSERT_EQ(sim.at(i), real[i]) << "step " << i << " of script " << seed;
        }
        ASSERT_EQ(sim.size(), real.size());
        // Linux tells more: each time that room is made, not only when there was none. What the
        // simulated poller tells, Linux tells.
        for (std::size_t i = 0; i < real_told.size(); ++i) {
            for (auto const& [key, ready] : sim_told.at(i)) {
                ASSERT_TRUE(real_told[i].contains(key))
                    << "wait " << i << " of script " << seed << " tells of " << key;
                ASSERT_EQ(ready, real_told[i][key])
                    << "wait " << i << " of script " << seed << " tells of " << key;
            }
        }
    }
}

}  // namespace
}  // namespace plumb::sim
