// SPDX-License-Identifier: Apache-2.0
#include <plumb/sim/world.hpp>

#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/io/io_operation_connection.hpp>
#include <plumb/task/async_run.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"
#include "support/descriptors.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plumb::sim {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;
using test::record_of;
using test::recorder;
using test::text_of;

std::string describe(std::error_code e) { return e.message(); }

/// Runs what is there until nothing is pending.
void run_all(io_multiplexer& m) {
    for (;;) {
        auto const done = m.run();
        ASSERT_TRUE(done) << done.error().message();
        if (*done == 0) {
            return;
        }
    }
}

// Time.

TEST(world, sleeps_an_hour_in_no_time) {
    auto const began = std::chrono::steady_clock::now();
    {
        world w(1);
        record_of<async_wait> waited;
        auto sleep = connect(async_wait(1h), recorder(waited));
        ASSERT_EQ(sleep.start(), io_status::pending);
        run_all(io_multiplexer::this_thread());
        ASSERT_TRUE(waited.done());
        EXPECT_TRUE(*waited.value) << describe(waited.value->error());
        EXPECT_EQ(w.now(), 1h);
        EXPECT_EQ(w.counters().clock_moves, 1u);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST(world, ends_timers_in_order_each_at_its_time) {
    world w(2);
    auto const steady = std::chrono::steady_clock::time_point(
        std::chrono::nanoseconds(platform::os().steady_now()));
    auto const system = std::chrono::system_clock::time_point(
        std::chrono::nanoseconds(platform::os().system_now()));
    struct told {
        world* of;
        std::vector<std::pair<int, std::chrono::nanoseconds>>* log;
        int name;
        void set_value(result<void>&& r) noexcept { EXPECT_TRUE(r); }
        void set_done() noexcept { log->emplace_back(name, of->now()); }
    };
    std::vector<std::pair<int, std::chrono::nanoseconds>> log;
    auto const timer = [&](int name, deadline when) {
        return std::make_unique<io_operation_connection<async_wait, told>>(
            connect(async_wait(when), told{&w, &log, name}));
    };
    std::vector<std::unique_ptr<io_operation_connection<async_wait, told>>> timers;
    timers.push_back(timer(0, 24h));
    timers.push_back(timer(1, 1ns));
    timers.push_back(timer(2, steady + 1h));
    timers.push_back(timer(3, system + 30min));
    timers.push_back(timer(4, 1h));
    timers.push_back(timer(5, 10s));
    for (auto const& t : timers) {
        ASSERT_EQ(t->start(), io_status::pending);
    }
    run_all(io_multiplexer::this_thread());
    std::vector<std::pair<int, std::chrono::nanoseconds>> const expected{
        {1, 1ns}, {5, 10s}, {3, 30min}, {2, 1h}, {4, 1h}, {0, 24h}};
    EXPECT_EQ(log, expected);
}

TEST(world, stands_still_while_there_is_something_to_do) {
    world w(3);
    auto pair = stream_socket_handle::socket_pair().value();
    std::array<char, 16> memory;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(pair.first.write(bytes_of("ping")));
        ASSERT_TRUE(pair.second.read(buffer(memory)));
    }
    EXPECT_EQ(w.now(), 0ns);
}

TEST(world, lets_the_deadlines_of_a_busy_program_come) {
    world w(4);
    auto& m = io_multiplexer::this_thread();
    record_of<async_wait> waited;
    auto sleep = connect(async_wait(1ms), recorder(waited));
    ASSERT_EQ(sleep.start(), io_status::pending);
    int turns = 0;
    for (; !waited.done() && turns < 10'000; ++turns) {
        ASSERT_TRUE(m.try_run());
    }
    EXPECT_TRUE(waited.done());
    EXPECT_GT(turns, 1000);
}

TEST(world, times_a_blocking_read_out_in_no_time) {
    world w(5);
    auto ends = pipe_handle::anonymous_pipe().value();
    std::array<char, 8> memory;
    EXPECT_EQ(ends.reader.try_read_for(buffer(memory), 1h).error(), std::errc::timed_out);
    EXPECT_EQ(w.now(), 1h);
}

TEST(world, has_a_system_clock_that_can_be_shifted) {
    world::options o;
    o.system_start = std::chrono::sys_days(std::chrono::May / 4 / 2000);
    world w(6, o);
    auto const system_now = [] { return std::chrono::nanoseconds(platform::os().system_now()); };
    EXPECT_EQ(system_now(), o.system_start.time_since_epoch());
    w.advance(90min);
    EXPECT_EQ(w.now(), 90min);
    EXPECT_EQ(system_now(), o.system_start.time_since_epoch() + 90min);
    w.shift_system_clock(-1h);
    EXPECT_EQ(w.now(), 90min);
    EXPECT_EQ(system_now(), o.system_start.time_since_epoch() + 30min);

    record_of<async_wait> waited;
    auto until = connect(async_wait(o.system_start + 1h), recorder(waited));
    ASSERT_EQ(until.start(), io_status::pending);
    w.shift_system_clock(29min);
    run_all(io_multiplexer::this_thread());
    EXPECT_EQ(w.now(), 91min);
}

// Waits without end.

TEST(world, tells_a_wait_that_nothing_could_end) {
    world w(7);
    auto ends = pipe_handle::anonymous_pipe().value();
    std::array<char, 8> memory;
    EXPECT_EQ(ends.reader.read(buffer(memory)).error(), std::errc::resource_deadlock_would_occur);
    record_of<async_read> read;
    auto reading = connect(async_read(ends.reader, buffer(memory)), recorder(read));
    ASSERT_EQ(reading.start(), io_status::pending);
    auto const ran = io_multiplexer::this_thread().run();
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error(), std::errc::resource_deadlock_would_occur);
    EXPECT_TRUE(read.untold());
    EXPECT_EQ(w.now(), 0ns);
}

TEST(world, tells_a_deadlock_of_coroutines) {
    world w(8);
    io_context context;
    EXPECT_EQ(context.multiplexer().kind(), multiplexer_kind::sim);
    auto a = stream_socket_handle::socket_pair().value();
    auto const wait_for = [](stream_socket_handle& s) -> task<> {
        char c;
        (void)co_await s.co_read(buffer(&c, 1));
    };
    async_run(context.get_executor(), wait_for(a.first));
    async_run(context.get_executor(), wait_for(a.second));
    EXPECT_EQ(context.run().error(), std::errc::resource_deadlock_would_occur);
}

TEST(world, honours_a_wake_up_before_the_wait) {
    world w(9);
    auto& m = io_multiplexer::this_thread();
    record_of<async_wait> waited;
    auto sleep = connect(async_wait(deadline()), recorder(waited));
    ASSERT_EQ(sleep.start(), io_status::pending);
    m.wake();
    auto const ran = m.run();
    ASSERT_TRUE(ran) << describe(ran.error());
    EXPECT_LT(*ran, 0);
    EXPECT_EQ(w.now(), 0ns);
}

// Handles.

TEST(world, is_apart_from_the_real_system) {
    auto const before = test::open_descriptors();
    world w(10);
    auto pair = stream_socket_handle::socket_pair().value();
    EXPECT_EQ(test::open_descriptors(), before);
    char c = 0;
    buffer const b(&c, 1);
    EXPECT_EQ(platform::os().read(0, handle_kind::pipe, &b, 1),
              platform::failed_with(std::errc::bad_file_descriptor));
    EXPECT_EQ(platform::native_seam().read(pair.first.native(), handle_kind::stream_socket, &b, 1),
              platform::failed_with(std::errc::bad_file_descriptor));
}

TEST(world, counts_its_handles_and_limits_them) {
    world::options o;
    o.most_handles = 5;
    world w(11, o);
    auto l = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    ASSERT_TRUE(client.connect(l.local().value()));
    auto pair = stream_socket_handle::socket_pair().value();
    EXPECT_EQ(w.counters().handles_open, 4u);
    EXPECT_EQ(pipe_handle::anonymous_pipe().error(), std::errc::too_many_files_open);
    auto last = stream_socket_handle::stream_socket(endpoint::family_type::ipv6).value();
    EXPECT_EQ(stream_socket_handle::stream_socket(endpoint::family_type::ipv4).error(),
              std::errc::too_many_files_open);
    EXPECT_EQ(l.accept().error(), std::errc::too_many_files_open);
    ASSERT_TRUE(last.close());
    EXPECT_TRUE(l.accept()) << "the connection was kept";
    EXPECT_EQ(w.counters().handles_open, 4u);
    EXPECT_EQ(w.counters().handles_most, 5u);
    EXPECT_EQ(w.counters().connections, 1u);
}

TEST(world, gives_no_number_twice_unless_it_shall) {
    std::set<native_handle> numbers;
    {
        world w(12);
        for (int i = 0; i < 50; ++i) {
            auto pair = stream_socket_handle::socket_pair().value();
            EXPECT_TRUE(numbers.insert(pair.first.native()).second);
            EXPECT_TRUE(numbers.insert(pair.second.native()).second);
        }
    }
    world::options o;
    o.reuse_numbers = true;
    world w(12, o);
    auto first = stream_socket_handle::socket_pair().value();
    auto second = stream_socket_handle::socket_pair().value();
    auto const low = first.first.native();
    auto const high = second.first.native();
    EXPECT_LT(low, high);
    ASSERT_TRUE(second.first.close());
    ASSERT_TRUE(first.first.close());
    auto third = stream_socket_handle::socket_pair().value();
    EXPECT_EQ(third.first.native(), low) << "the lowest";
    EXPECT_EQ(third.second.native(), high);
}

TEST(world, may_end_before_its_handles_if_it_shall) {
    world::options o;
    o.leaves_handles_open = true;
    auto w = std::make_unique<world>(13, o);
    auto pair = stream_socket_handle::socket_pair().value();
    record_of<async_read> read;
    char c;
    auto reading = connect(async_read(pair.first, buffer(&c, 1)), recorder(read));
    ASSERT_EQ(reading.start(), io_status::pending);
    w.reset();
    EXPECT_FALSE(pair.first.close()) << "it is gone";
    EXPECT_FALSE(pair.second.close());
    EXPECT_FALSE(platform::os().simulated);
}

TEST(world, gives_the_thread_a_multiplexer_and_takes_it_back) {
    auto& real = io_multiplexer::this_thread();
    {
        world w(14);
        EXPECT_EQ(io_multiplexer::this_thread().kind(), multiplexer_kind::sim);
        EXPECT_EQ(io_multiplexer::make(multiplexer_kind::epoll).value()->kind(),
                  multiplexer_kind::sim);
    }
    EXPECT_EQ(&io_multiplexer::this_thread(), &real);
    world w(15);
    EXPECT_EQ(io_multiplexer::this_thread().kind(), multiplexer_kind::sim);
}

// Buffers.

TEST(world, bounds_what_is_unread) {
    world::options o;
    o.pipe_buffer = 8192;
    o.socket_buffer = 10;
    world w(16, o);
    std::string const much(100'000, 'x');
    auto ends = pipe_handle::anonymous_pipe().value();
    EXPECT_EQ(ends.writer.write(bytes_of(much)).bytes_transferred(), 8192u);
    EXPECT_EQ(ends.writer.try_write(bytes_of(much)).error(), std::errc::timed_out);
    auto pair = stream_socket_handle::socket_pair().value();
    EXPECT_EQ(pair.first.write(bytes_of(much)).bytes_transferred(), 10u);
    EXPECT_EQ(pair.first.try_write(bytes_of(much)).error(), std::errc::timed_out);
    EXPECT_EQ(pair.second.write(bytes_of(much)).bytes_transferred(), 10u) << "each direction";
    std::array<char, 4> memory;
    EXPECT_EQ(pair.second.read(buffer(memory)).bytes_transferred(), 4u);
    EXPECT_EQ(pair.first.try_write(bytes_of(much)).bytes_transferred(), 4u);
    EXPECT_EQ(w.counters().bytes_written, 8192u + 10 + 10 + 4);
    EXPECT_EQ(w.counters().bytes_read, 4u);
}

TEST(world, counts_what_is_under_way_as_unread) {
    world::options o;
    o.socket_buffer = 100;
    o.least_latency = o.most_latency = 1s;
    world w(17, o);
    auto l = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    ASSERT_TRUE(client.connect(l.local().value()));
    EXPECT_EQ(w.now(), 2s) << "there and back";
    auto server = l.accept().value();
    std::string const much(1000, 'x');
    EXPECT_EQ(client.write(bytes_of(much)).bytes_transferred(), 100u);
    EXPECT_EQ(client.try_write(bytes_of(much)).error(), std::errc::timed_out);
    std::array<char, 1000> memory;
    EXPECT_EQ(server.try_read(buffer(memory)).error(), std::errc::timed_out);
    EXPECT_EQ(server.read(buffer(memory)).bytes_transferred(), 100u);
    EXPECT_EQ(w.now(), 3s);
    EXPECT_EQ(client.try_write(bytes_of(much)).error(), std::errc::timed_out);
    EXPECT_EQ(client.write(bytes_of(much)).bytes_transferred(), 100u);
    EXPECT_EQ(w.now(), 4s);
    ASSERT_TRUE(client.close());
    EXPECT_EQ(server.read(buffer(memory)).bytes_transferred(), 100u) << "sent before the end";
    EXPECT_EQ(server.read(buffer(memory)).bytes_transferred(), 0u);
}

// The network.

TEST(world, lets_any_address_be_a_host) {
    world w(18);
    auto const where = endpoint::parse("203.0.113.7:80").value();
    auto l = listen_socket_handle::listen(where).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    ASSERT_TRUE(client.connect(where));
    EXPECT_EQ(l.accept().value().local().value(), where);
    EXPECT_EQ(listen_socket_handle::listen(where).error(), std::errc::address_in_use);
    auto refused = stream_socket_handle::stream_socket(endpoint::family_type::ipv6).value();
    EXPECT_EQ(refused.connect(endpoint::parse("[2001:db8::1]:80").value()).error(),
              std::errc::connection_refused);
}

TEST(world, drops_datagrams_for_which_there_is_no_room_and_delivers_others_later) {
    world::options o;
    o.least_latency = o.most_latency = 1ms;
    world w(30, o);
    auto const make = [] {
        return datagram_socket_handle::datagram_socket(endpoint::family_type::ipv4).value();
    };
    auto to = make();
    ASSERT_TRUE(to.bind(endpoint::parse("203.0.113.7:53").value()));
    ASSERT_TRUE(to.set_receive_buffer(1000));
    auto from = make();
    std::array<std::byte, 500> memory{};
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(from.send(const_buffer(memory), to.local().value()));
    }
    EXPECT_EQ(to.receive(buffer(memory), 0s).error(), std::errc::timed_out) << "under way";
    EXPECT_EQ(to.receive(buffer(memory))->buffers.bytes(), memory.size());
    EXPECT_EQ(w.now(), 1ms);
    EXPECT_EQ(to.receive(buffer(memory))->from.port(), from.local()->port());
    EXPECT_EQ(to.receive(buffer(memory), 1s).error(), std::errc::timed_out);
    EXPECT_EQ(w.counters().datagrams_dropped, 1u);
    w.set_silent(to.local().value());
    ASSERT_TRUE(from.send(const_buffer(memory), to.local().value()));
    EXPECT_EQ(to.receive(buffer(memory), 1s).error(), std::errc::timed_out);
}

TEST(world, has_hosts_that_are_silent) {
    world w(19);
    auto const where = endpoint::parse("198.51.100.1:443").value();
    w.set_silent(where.with_port(0));
    auto l = listen_socket_handle::listen(where).value();
    auto const open = [] {
        return stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    };
    auto client = open();
    EXPECT_EQ(client.connect(where, 10s).error(), std::errc::timed_out);
    EXPECT_EQ(w.now(), 10s);
    auto patient = open();
    EXPECT_EQ(patient.connect(where).error(), std::errc::timed_out);
    EXPECT_EQ(w.now(), 10s + 127s);
    auto lucky = open();
    EXPECT_EQ(lucky.connect(where, 2s).error(), std::errc::timed_out);
    w.set_silent(where.with_port(0), false);
    auto another = open();
    EXPECT_TRUE(another.connect(where, 1ms));
}

TEST(world, picks_a_latency_for_each_connection) {
    world::options o;
    o.least_latency = 1ms;
    o.most_latency = 2ms;
    world w(20, o);
    auto l = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    std::set<std::chrono::nanoseconds> latencies;
    for (int i = 0; i < 20; ++i) {
        auto const before = w.now();
        auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        ASSERT_TRUE(client.connect(l.local().value()));
        auto const connected = w.now() - before;
        EXPECT_GE(connected, 2ms);
        EXPECT_LE(connected, 4ms);
        latencies.insert(connected);
        auto server = l.accept().value();
        char c = 'x';
        ASSERT_TRUE(client.write(const_buffer(&c, 1)));
        ASSERT_TRUE(server.read(buffer(&c, 1)));
        EXPECT_EQ(w.now() - before, connected + connected / 2) << "the same one there";
        ASSERT_TRUE(server.write(const_buffer(&c, 1)));
        ASSERT_TRUE(client.read(buffer(&c, 1)));
        EXPECT_EQ(w.now() - before, connected * 2) << "and back";
    }
    EXPECT_GT(latencies.size(), 10u);
}

// The seed.

/// Programs of coroutines that know nothing of the world: clients that write and read back what
/// they wrote, some after a pause, and servers that echo.
class echo {
public:
    explicit echo(io_context& c) : context_(c) {}

    void run(int clients, std::size_t bytes) {
        listener_ = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
        async_run(context_.get_executor(), serve(clients));
        for (int i = 0; i < clients; ++i) {
            async_run(context_.get_executor(), ask(i, bytes));
        }
        auto const ran = context_.run();
        EXPECT_TRUE(ran) << describe(ran.error());
    }

    /// Who was done when.
    std::vector<int> order;
    int short_reads = 0;

private:
    task<> serve(int clients) {
        for (int i = 0; i < clients; ++i) {
            auto accepted = co_await listener_.co_accept();
            async_run(context_.get_executor(), answer(std::move(*accepted)));
        }
    }
    task<> answer(stream_socket_handle s) {
        std::array<char, 1000> memory;
        for (;;) {
            auto const got = co_await s.co_read(buffer(memory));
            if (!got || got.bytes_transferred() == 0) {
                EXPECT_TRUE(got) << describe(got.error());
                co_return;
            }
            const_buffers rest = *got;
            while (!rest.empty()) {
                auto const put = co_await s.co_write(rest);
                if (!put) {
                    ADD_FAILURE() << describe(put.error());
                    co_return;
                }
                rest = const_buffer((*rest.begin()).skip(put.bytes_transferred()));
            }
        }
    }
    task<> ask(int name, std::size_t bytes) {
        auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        auto const connected = co_await s.co_connect(listener_.local().value());
        EXPECT_TRUE(connected);
        std::string text;
        for (std::size_t i = 0; i < bytes; ++i) {
            text += static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(name)) % 26);
        }
        std::string answer;
        std::string memory(600, '\0');
        for (std::size_t sent = 0; answer.size() < text.size();) {
            if (sent == answer.size()) {
                auto const part = std::string_view(text).substr(sent, 500);
                auto const put = co_await s.co_write(const_buffer(part.data(), part.size()));
                EXPECT_TRUE(put);
                sent += put.bytes_transferred();
            }
            auto const got = co_await s.co_read(buffer(memory));
            EXPECT_TRUE(got);
            answer += text_of(got);
            short_reads += got.bytes_transferred() < 500 ? 1 : 0;
            if (name % 3 == 0) {
                (void)co_await co_wait(1ms);
            }
        }
        EXPECT_EQ(answer, text);
        order.push_back(name);
    }

    io_context& context_;
    listen_socket_handle listener_;
};

struct trace {
    std::vector<int> order;
    std::uint64_t fingerprint;
    std::chrono::nanoseconds end;
    int short_reads;
    friend bool operator==(trace const&, trace const&) = default;
};

trace echo_in_world(std::uint64_t seed, world::options const& o) {
    world w(seed, o);
    trace t;
    {
        io_context context;
        echo program(context);
        program.run(20, 3000);
        t.order = std::move(program.order);
        t.short_reads = program.short_reads;
    }
    t.fingerprint = w.fingerprint();
    t.end = w.now();
    EXPECT_EQ(t.order.size(), 20u);
    return t;
}

TEST(world, runs_the_same_way_for_the_same_seed) {
    world::options o;
    for (bool const rough : {false, true}) {
        if (rough) {
            o.short_transfers = true;
            o.most_latency = 1ms;
        }
        auto const first = echo_in_world(42, o);
        EXPECT_EQ(first, echo_in_world(42, o));
        std::set<std::vector<int>> orders{first.order};
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            auto const other = echo_in_world(seed, o);
            EXPECT_NE(other.fingerprint, first.fingerprint);
            orders.insert(other.order);
        }
        EXPECT_GT(orders.size(), 5u) << "other seeds, other orders";
    }
}

TEST(world, makes_reads_and_writes_short_and_loses_nothing) {
    world::options o;
    o.short_transfers = true;
    o.socket_buffer = 700;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        EXPECT_GT(echo_in_world(seed, o).short_reads, 100);
    }
    auto const whole = echo_in_world(0, {});
    EXPECT_EQ(whole.short_reads, 0);
}

TEST(world, makes_reads_of_pipes_short_and_keeps_small_writes_whole) {
    world::options o;
    o.short_transfers = true;
    world w(22, o);
    auto ends = pipe_handle::anonymous_pipe().value();
    std::string const page(4096, 'p');
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(ends.writer.write(bytes_of(page)).bytes_transferred(), page.size());
    }
    std::string memory(4096, '\0');
    record_of<async_read> read;
    auto reading = connect(async_read(ends.reader, buffer(memory)), recorder(read));
    std::size_t total = 0;
    int reads = 0;
    for (; total < 10 * page.size(); ++reads) {
        (void)reading.start();
        run_all(io_multiplexer::this_thread());
        ASSERT_TRUE(read.done());
        total += read.value->bytes_transferred();
        read = {};
        reading.reset();
    }
    EXPECT_GT(reads, 10);
    auto const large = std::string(20'000, 'l');
    std::set<std::size_t> sizes;
    for (int i = 0; i < 20; ++i) {
        auto const n = ends.writer.write(bytes_of(large)).bytes_transferred();
        sizes.insert(n);
        for (std::size_t left = n; left != 0;) {
            left -= ends.reader.read(buffer(memory)).bytes_transferred();
        }
    }
    EXPECT_GT(sizes.size(), 3u);
    EXPECT_TRUE(sizes.contains(large.size()));
}

TEST(world, is_the_same_on_every_machine) {
    // By the seam alone, so that this tells only of the world.
    world::options o;
    o.short_transfers = true;
    o.least_latency = 900ms;
    o.most_latency = 1s;
    o.socket_buffer = 1000;
    world w(2024, o);
    auto const& os = platform::os();
    auto const poller = os.open_poller();
    auto const listener = os.open_socket(handle_kind::stream_socket, endpoint::family_type::ipv4);
    ASSERT_EQ(os.bind(listener, endpoint::loopback_v4(0)), 0);
    ASSERT_EQ(os.listen(listener, 100), 0);
    endpoint where;
    ASSERT_EQ(os.local_endpoint(listener, where), 0);
    std::vector<native_handle> open{listener};
    for (std::uint64_t i = 0; i < 20; ++i) {
        open.push_back(os.open_socket(handle_kind::stream_socket, endpoint::family_type::ipv4));
        ASSERT_EQ(os.connect(open.back(), where),
                  platform::failed_with(std::errc::operation_in_progress));
        ASSERT_EQ(os.poller_add(poller, open.back(), static_cast<std::uint64_t>(open.back())), 0);
    }
    std::string const text(2000, 't');
    std::string memory(3000, '\0');
    for (int turn = 0; turn < 200; ++turn) {
        std::array<platform::poll_event, 4> events;
        auto const count = os.poller_wait(poller, events.data(), events.size(), 2'000'000'000);
        for (platform::outcome i = 0; i < count; ++i) {
            auto const h = static_cast<native_handle>(events[static_cast<std::size_t>(i)].key());
            const_buffer const out(text.data(), text.size());
            buffer const in(memory.data(), memory.size());
            os.write(h, handle_kind::stream_socket, &out, 1);
            os.read(h, handle_kind::stream_socket, &in, 1);
        }
        if (auto const accepted = os.accept(listener); accepted >= 0) {
            open.push_back(accepted);
            ASSERT_EQ(os.poller_add(poller, accepted, static_cast<std::uint64_t>(accepted)), 0);
        }
    }
    for (auto const h : open) {
        EXPECT_EQ(os.close(h), 0);
    }
    os.close_poller(poller);
    EXPECT_EQ(w.counters().connections, 20u);
    EXPECT_EQ(w.fingerprint(), 17'383'223'502'100'576'552u) << "changes with the world itself";
    EXPECT_EQ(w.now(), 4'598'283'878ns);
}

TEST(world, tells_runs_apart_by_what_they_write) {
    auto const run = [](char const* text) {
        world w(1);
        auto pair = stream_socket_handle::socket_pair().value();
        EXPECT_TRUE(pair.first.write(const_buffer(text, std::strlen(text))));
        return w.fingerprint();
    };
    EXPECT_EQ(run("one"), run("one"));
    EXPECT_NE(run("one"), run("two"));
}

TEST(world, carries_thousands_of_connections) {
    world::options o;
    o.least_latency = 10ms;
    o.most_latency = 200ms;
    world w(21, o);
    io_context context;
    echo program(context);
    program.run(2000, 1000);
    EXPECT_EQ(program.order.size(), 2000u);
    EXPECT_EQ(w.counters().connections, 2000u);
}

}  // namespace
}  // namespace plumb::sim
