// SPDX-License-Identifier: Apache-2.0
#include "io/io_uring_backend.hpp"

#include <plumb/handle/file_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

// What only the ring does: it reads ahead of a connection that is read continuously, keeps what
// comes without a reader, and holds buffers until the kernel lets go of them.
namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class io_uring_test : public ::testing::Test {
protected:
    std::unique_ptr<io_multiplexer> multiplexer;
    stream_socket_handle::pair ends;  // the first blocks, the second uses the ring
    std::array<std::byte, 64> memory{};

    void SetUp() override {
        auto made = io_multiplexer::make(multiplexer_kind::io_uring);
        if (!made) {
            GTEST_SKIP() << "no ring here: " << made.error().message();
        }
        multiplexer = std::move(*made);
        ends = pair();
    }
    stream_socket_handle::pair pair() {
        auto made = stream_socket_handle::socket_pair();
        EXPECT_TRUE(made);
        made->second.set_multiplexer(*multiplexer);
        return std::move(*made);
    }
    static void send(stream_socket_handle& through, std::string const& text) {
        for (std::size_t sent = 0; sent < text.size();) {
            auto const rest = const_buffer(std::span(text).subspan(sent));
            auto const wrote = through.write(rest, patience);
            ASSERT_TRUE(wrote) << wrote.error().message();
            sent += wrote.bytes_transferred();
        }
    }
    void send(std::string const& text) { send(ends.first, text); }

    template <class Condition>
    bool drive_until(Condition condition) {
        auto const end = std::chrono::steady_clock::now() + patience;
        while (!condition() && std::chrono::steady_clock::now() < end) {
            if (!multiplexer->try_run_for(100ms)) {
                break;
            }
        }
        return condition();
    }
    io_result<buffers> read(stream_socket_handle& from, io_request<buffers> request) {
        record_of<async_read> told;
        auto operation = connect(async_read(from, request), recorder(told));
        (void)operation.start();
        EXPECT_TRUE(drive_until([&] { return told.done(); }));
        return told.value ? *told.value : std::make_error_code(std::errc::timed_out);
    }
    std::string read_text(stream_socket_handle& from, std::size_t most) {
        std::string text(most, '\0');
        auto const got = read(from, buffer(text));
        EXPECT_TRUE(got) << got.error().message();
        text.resize(got.bytes_transferred());
        return text;
    }
    std::string read_text(std::size_t most = 64) { return read_text(ends.second, most); }

    /// Exchanges messages until the connection is received from continuously.
    void warm_up(stream_socket_handle::pair& p) {
        for (int i = 0; i < 8; ++i) {
            send(p.first, "m" + std::to_string(i));
            ASSERT_EQ(read_text(p.second, 64), "m" + std::to_string(i));
        }
    }
    void warm_up() { warm_up(ends); }
    /// Lets what the kernel has put off happen.
    void turn() {
        record_of<async_wait> told;
        auto operation = connect(async_wait(*multiplexer, 500us), recorder(told));
        ASSERT_EQ(operation.start(), io_status::pending);
        ASSERT_TRUE(drive_until([&] { return told.done(); }));
    }
    /// From now on this thread uses the multiplexer.
    void drive_here() { ASSERT_TRUE(multiplexer->try_run()); }

    static int unread(stream_socket_handle const& s) {
        int count = -1;
        ::ioctl(static_cast<int>(s.native()), FIONREAD, &count);
        return count;
    }
    static bool hung_up(stream_socket_handle const& s) {
        pollfd p{static_cast<int>(s.native()), POLLIN, 0};
        return ::poll(&p, 1, 5000) == 1 && (p.revents & POLLHUP) != 0;
    }
};

TEST_F(io_uring_test, starts_more_operations_in_a_turn_than_its_queue_holds) {
    constexpr int pairs = 350;
    std::vector<stream_socket_handle::pair> sockets;
    std::deque<record_of<async_read>> read_back;
    std::deque<record_of<async_write>> written;
    std::deque<std::array<std::byte, 8>> memories(2 * pairs);
    std::deque<io_operation_connection<async_read, recorder<io_result<buffers>>>> reads;
    std::deque<io_operation_connection<async_write, recorder<io_result<const_buffers>>>> writes;
    std::string const text = "four";
    for (int i = 0; i < pairs; ++i) {
        sockets.push_back(pair());
    }
    std::size_t next = 0;
    for (auto& p : sockets) {
        p.first.set_multiplexer(*multiplexer);
        for (auto* const s : {&p.first, &p.second}) {
            reads.push_back(connect(async_read(*s, buffer(memories[next++])),
                                    recorder(read_back.emplace_back())));
            writes.push_back(
                connect(async_write(*s, const_buffer(text)), recorder(written.emplace_back())));
            ASSERT_EQ(reads.back().start(), io_status::pending);
            ASSERT_EQ(writes.back().start(), io_status::pending);
        }
    }
    ASSERT_TRUE(drive_until([&] {
        return std::ranges::all_of(read_back, [](auto& r) { return r.done(); }) &&
               std::ranges::all_of(written, [](auto& w) { return w.done(); });
    }));
    for (auto& r : read_back) {
        EXPECT_EQ(r.value->bytes_transferred(), text.size());
    }
}

TEST_F(io_uring_test, keeps_what_comes_without_a_reader_for_the_next_reads) {
    warm_up();
    send("early");
    turn();
    EXPECT_EQ(unread(ends.second), 0) << "it was not received ahead";
    EXPECT_EQ(read_text(2), "ea");
    EXPECT_EQ(read_text(2), "rl");
    EXPECT_EQ(read_text(), "y");
    send("later");
    EXPECT_EQ(read_text(), "later");
}

TEST_F(io_uring_test, a_read_of_what_is_kept_completes_at_once) {
    warm_up();
    send("early");
    turn();
    record_of<async_read> told;
    auto operation = connect(async_read(ends.second, buffer(memory), 0ns), recorder(told));
    EXPECT_EQ(operation.start(), io_status::completed);
    EXPECT_EQ(operation.poll(), io_status::completed);
    EXPECT_EQ(told.value->bytes_transferred(), 5U);
}

TEST_F(io_uring_test, a_read_that_may_not_wait_finds_what_is_there) {
    warm_up();
    record_of<async_read> told;
    auto operation = connect(async_read(ends.second, buffer(memory), 0ns), recorder(told));
    EXPECT_EQ(operation.start(), io_status::completed);
    EXPECT_EQ(operation.poll(), io_status::completed);
    EXPECT_EQ(told.value->error(), std::errc::timed_out);
    operation.reset();
    send("there");
    EXPECT_EQ(operation.start(), io_status::completed);
    EXPECT_EQ(operation.poll(), io_status::completed);
    EXPECT_EQ(told.value->bytes_transferred(), 5U);
}

TEST_F(io_uring_test, what_is_kept_is_scattered_over_the_buffers) {
    warm_up();
    std::array<char, 3> a;
    std::array<char, 4> b;
    std::array<char, 9> c;
    std::array const list{buffer(a), buffer(b), buffer(c)};
    for (bool const ahead : {false, true}) {
        if (ahead) {
            send("0123456789");
            turn();
        }
        record_of<async_read> told;
        auto operation =
            connect(async_read(ends.second, std::span<buffer const>(list)), recorder(told));
        (void)operation.start();
        if (!ahead) {
            send("0123456789");
        }
        ASSERT_TRUE(drive_until([&] { return told.done(); }));
        EXPECT_EQ(told.value->bytes_transferred(), 10U);
        EXPECT_EQ(std::string(a.data(), 3) + std::string(b.data(), 4) + std::string(c.data(), 3),
                  "0123456789");
        EXPECT_EQ((*told.value)->size(), 3U);
    }
}

TEST_F(io_uring_test, a_pooled_read_takes_what_is_kept) {
    warm_up();
    send("early");
    turn();
    record_of<async_read_pooled> told;
    auto operation = connect(async_read_pooled(ends.second, 3), recorder(told));
    (void)operation.start();
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->value().view(), "ear");
    operation.reset();
    (void)operation.start();
    ASSERT_TRUE(drive_until([&] { return told.dones == 2; }));
    EXPECT_EQ(told.value->value().view(), "ly");
}

TEST_F(io_uring_test, a_slow_reader_is_received_ahead_of_within_limits) {
    warm_up();
    std::string sent;
    for (int i = 0; i < 100; ++i) {
        auto const text = std::to_string(1000 + i);
        send(text);
        sent += text;
        turn();
    }
    EXPECT_GE(unread(ends.second), 4 * 90);
    std::string got;
    while (got.size() < sent.size()) {
        got += read_text(7);
    }
    EXPECT_EQ(got, sent);
    warm_up();
}

TEST_F(io_uring_test, the_end_comes_behind_what_is_kept) {
    warm_up();
    send("last");
    turn();
    ASSERT_TRUE(ends.first.close());
    turn();
    turn();
    EXPECT_EQ(read_text(), "last");
    EXPECT_EQ(read_text(), "");
    EXPECT_EQ(read_text(), "");
}

TEST_F(io_uring_test, bytes_of_all_sizes_arrive_in_order) {
    std::minstd_rand random(20240);
    auto const up_to = [&](std::size_t most) {
        return std::uniform_int_distribution<std::size_t>(1, most)(random);
    };
    for (int round = 0; round < 2000; ++round) {
        bool const bulk = round / 100 % 4 == 3;
        std::string text(bulk ? up_to(20'000) : up_to(300), '\0');
        for (char& c : text) {
            c = static_cast<char>('a' + up_to(26) - 1);
        }
        std::string got;
        bool const early = random() % 2 == 0;
        if (early) {
            send(text);
            if (random() % 2 == 0) {
                turn();
            }
        }
        std::size_t const most = random() % 3 == 0 ? up_to(100) : bulk ? 16'384 : 4096;
        if (!early) {
            std::string part(most, '\0');
            record_of<async_read> told;
            auto operation = connect(async_read(ends.second, buffer(part)), recorder(told));
            (void)operation.start();
            send(text);
            ASSERT_TRUE(drive_until([&] { return told.done(); }));
            got = part.substr(0, told.value->bytes_transferred());
        }
        while (got.size() < text.size()) {
            if (random() % 16 == 0) {
                std::string part(most, '\0');
                auto const blocking = ends.second.read(buffer(part), patience);
                ASSERT_TRUE(blocking);
                got += part.substr(0, blocking.bytes_transferred());
            } else {
                got += read_text(most);
            }
        }
        ASSERT_EQ(got, text) << "round " << round;
    }
}

TEST_F(io_uring_test, a_handle_with_kept_bytes_is_not_released) {
    warm_up();
    send("kept");
    turn();
    auto const refused = ends.second.release();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), error::parked_bytes);
    EXPECT_EQ(read_text(), "kept");
    auto const released = ends.second.release();
    ASSERT_TRUE(released);
    auto again = stream_socket_handle::adopt(*released).value();
    send("more");
    auto const got = again.read(buffer(memory), patience);
    EXPECT_EQ(got.bytes_transferred(), 4U);
}

TEST_F(io_uring_test, release_finds_bytes_that_come_at_the_last_moment) {
    warm_up();
    send("just now");
    auto released = ends.second.release();
    std::string got(64, '\0');
    if (released) {
        auto again = stream_socket_handle::adopt(*released).value();
        got.resize(again.read(buffer(got), patience).bytes_transferred());
    } else {
        EXPECT_EQ(released.error(), error::parked_bytes);
        got = read_text();
    }
    EXPECT_EQ(got, "just now");
}

TEST_F(io_uring_test, a_blocking_read_takes_what_is_kept_first) {
    warm_up();
    send("early");
    turn();
    send("late");
    auto const first = ends.second.read(buffer(memory).first(3), patience);
    EXPECT_EQ(first.bytes_transferred(), 3U);
    std::string got(reinterpret_cast<char const*>(memory.data()), 3);
    while (got.size() < 9) {
        auto const more = ends.second.read(buffer(memory), patience);
        ASSERT_TRUE(more);
        got.append(reinterpret_cast<char const*>(memory.data()), more.bytes_transferred());
    }
    EXPECT_EQ(got, "earlylate");
}

TEST_F(io_uring_test, a_cancelled_read_leaves_the_bytes_to_the_next) {
    warm_up();
    record_of<async_read> told;
    auto operation = connect(async_read(ends.second, buffer(memory)), recorder(told));
    ASSERT_EQ(operation.start(), io_status::pending);
    send("whose");
    operation.cancel();
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    if (!*told.value) {
        EXPECT_EQ(told.value->error(), std::errc::operation_canceled);
        EXPECT_EQ(read_text(), "whose");
    }
}

TEST_F(io_uring_test, close_ends_the_connection_although_it_is_being_received_from) {
    warm_up();
    ASSERT_TRUE(ends.second.close());
    EXPECT_TRUE(hung_up(ends.first));
}

TEST_F(io_uring_test, close_ends_the_connection_although_a_read_is_in_flight) {
    record_of<async_read> told;
    auto operation = connect(async_read(ends.second, buffer(memory)), recorder(told));
    ASSERT_EQ(operation.start(), io_status::pending);
    turn();
    ASSERT_TRUE(ends.second.close());
    EXPECT_TRUE(hung_up(ends.first));
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->error(), std::errc::operation_canceled);
}

TEST_F(io_uring_test, close_drops_what_is_kept_and_its_buffers_serve_others) {
    for (int i = 0; i < 400; ++i) {
        auto p = pair();
        warm_up(p);
        send(p.first, "dropped");
        turn();
    }
    warm_up();
}

TEST_F(io_uring_test, connections_that_keep_all_the_buffers_stop_nobody) {
    std::vector<stream_socket_handle::pair> sockets;
    for (int i = 0; i < 200; ++i) {
        warm_up(sockets.emplace_back(pair()));
    }
    for (int message = 0; message < 6; ++message) {
        for (auto& p : sockets) {
            send(p.first, std::to_string(message));
        }
        turn();
    }
    auto fresh = pair();
    warm_up(fresh);
    record_of<async_read_pooled> told;
    auto operation = connect(async_read_pooled(fresh.second, 100), recorder(told));
    (void)operation.start();
    turn();
    send(fresh.first, "pooled");
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->value().view(), "pooled");
    for (auto& p : sockets) {
        std::string got;
        while (got.size() < 6) {
            got += read_text(p.second, 64);
        }
        EXPECT_EQ(got, "012345");
    }
}

TEST_F(io_uring_test, another_thread_may_drive_it_with_operations_in_flight) {
    warm_up();
    auto other = pair();
    auto idle = pair();
    record_of<async_read> told[3];
    std::array<std::byte, 8> memories[3];
    auto first = connect(async_read(ends.second, buffer(memories[0])), recorder(told[0]));
    auto second = connect(async_read(other.second, buffer(memories[1])), recorder(told[1]));
    auto third = connect(async_read(idle.second, buffer(memories[2])), recorder(told[2]));
    std::thread([&] {
        drive_here();
        ASSERT_EQ(first.start(), io_status::pending);
        ASSERT_EQ(second.start(), io_status::pending);
        ASSERT_EQ(third.start(), io_status::pending);
        turn();
    }).join();
    send("one");
    send(other.first, "two");
    ASSERT_TRUE(drive_until([&] { return told[0].done() && told[1].done(); }));
    EXPECT_EQ(told[0].value->bytes_transferred(), 3U);
    EXPECT_EQ(told[1].value->bytes_transferred(), 3U);
    std::thread([&] {
        drive_here();
        warm_up(other);
        send(other.first, "kept");
        turn();
    }).join();
    drive_here();
    EXPECT_EQ(read_text(other.second, 64), "kept");
    std::thread([&] {
        drive_here();
        third.cancel();
        ASSERT_TRUE(drive_until([&] { return told[2].done(); }));
        EXPECT_EQ(told[2].value->error(), std::errc::operation_canceled);
    }).join();
}

TEST_F(io_uring_test, requests_outlive_the_thread_that_made_them) {
    std::thread([&] { turn(); }).join();
    record_of<async_read> told;
    auto operation = connect(async_read(ends.second, buffer(memory)), recorder(told));
    for (int i = 0; i < 2; ++i) {
        std::thread([&] {
            drive_here();
            ASSERT_EQ(operation.start(), io_status::pending);
            turn();
        }).join();
        std::this_thread::sleep_for(5ms);
        send("late");
        ASSERT_TRUE(drive_until([&] { return told.dones == i + 1; }));
        EXPECT_EQ(told.value->bytes_transferred(), 4U);
        operation.reset();
    }
}

TEST_F(io_uring_test, ends_on_another_thread_with_operations_in_flight) {
    warm_up();
    auto other = pair();
    auto blocked = pair();
    record_of<async_read> told[2];
    record_of<async_write> written;
    std::array<std::byte, 8> memories[2];
    std::string const much(8 << 20, 'x');
    {
        auto first = connect(async_read(ends.second, buffer(memories[0])), recorder(told[0]));
        auto second = connect(async_read(other.second, buffer(memories[1])), recorder(told[1]));
        auto third = connect(async_write(blocked.second, const_buffer(much)), recorder(written));
        std::thread([&] {
            drive_here();
            ASSERT_EQ(first.start(), io_status::pending);
            ASSERT_EQ(second.start(), io_status::pending);
            ASSERT_EQ(third.start(), io_status::pending);
            turn();
        }).join();
        multiplexer.reset();
    }
    EXPECT_TRUE(told[0].untold());
    EXPECT_TRUE(told[1].untold());
    send(other.first, "not for anybody");
}

TEST_F(io_uring_test, ends_with_operations_in_flight_and_bytes_kept) {
    auto reading = pair();
    auto kept = pair();
    warm_up(reading);
    warm_up(kept);
    send(kept.first, "kept");
    turn();
    record_of<async_read> told[2];
    auto first = std::make_unique<std::array<std::byte, 64>>();
    auto one = std::make_unique<io_operation_connection<async_read, recorder<io_result<buffers>>>>(
        async_read(ends.second, buffer(*first)), recorder(told[0]));
    auto two = connect(async_read(reading.second, buffer(memory)), recorder(told[1]));
    ASSERT_EQ(one->start(), io_status::pending);
    ASSERT_EQ(two.start(), io_status::pending);
    turn();
    multiplexer.reset();
    one.reset();
    first.reset();
    send("into freed memory?");
    EXPECT_TRUE(told[0].untold());
    EXPECT_TRUE(told[1].untold());
    ASSERT_TRUE(kept.second.close());
    EXPECT_TRUE(hung_up(kept.first));
}

TEST_F(io_uring_test, a_read_destroyed_in_flight_holds_its_buffer_no_longer) {
    auto bytes = std::make_unique<std::array<std::byte, 64>>();
    record_of<async_read> told;
    {
        auto operation = connect(async_read(ends.second, buffer(*bytes)), recorder(told));
        ASSERT_EQ(operation.start(), io_status::pending);
        turn();
    }
    bytes.reset();
    send("next");
    EXPECT_EQ(read_text(), "next");
    EXPECT_TRUE(told.untold());
}

TEST_F(io_uring_test, waits_for_descriptors_that_do_not_block) {
    for (auto const* const s : {&ends.first, &ends.second}) {
        int const fd = static_cast<int>(s->native());
        ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    }
    warm_up();
    auto made = pipe_handle::anonymous_pipe();
    ASSERT_TRUE(made);
    for (auto* const h : {&made->reader, &made->writer}) {
        int const fd = static_cast<int>(h->native());
        ASSERT_EQ(::fcntl(fd, F_SETFL, O_NONBLOCK), 0);
        h->set_multiplexer(*multiplexer);
    }
    for (int i = 0; i < 8; ++i) {
        record_of<async_read> told;
        record_of<async_write> written;
        auto reading = connect(async_read(made->reader, buffer(memory)), recorder(told));
        auto writing = connect(async_write(made->writer, bytes_of("piped")), recorder(written));
        ASSERT_EQ(reading.start(), io_status::pending);
        turn();
        (void)writing.start();
        ASSERT_TRUE(drive_until([&] { return told.done() && written.done(); }));
        EXPECT_EQ(told.value->bytes_transferred(), 5U);
    }
}

// A pipe that is opened as a file makes the kernel wait for as long as the test wants.
class io_uring_file_test : public io_uring_test {
protected:
    pipe_handle::ends pipe = pipe_handle::anonymous_pipe().value();
    file_handle file = file_handle::adopt(pipe.reader.release().value());
    record_of<async_read> read;
    io_operation_connection<async_read, recorder<io_result<buffers>>> reading =
        connect(async_read(file, buffer(memory)), recorder(read));

    void SetUp() override {
        io_uring_test::SetUp();
        if (!IsSkipped()) {
            file.set_multiplexer(*multiplexer);
            ASSERT_EQ(reading.start(), io_status::pending);
            ASSERT_EQ(multiplexer->complete_io().value(), -1);
        }
    }
    void TearDown() override {
        (void)file.close();
        if (multiplexer != nullptr && reading.started() && !reading.completed()) {
            EXPECT_TRUE(multiplexer->try_run_for(patience));
        }
    }
};

TEST_F(io_uring_file_test, a_cancelled_operation_on_a_file_ends_when_the_kernel_says_so) {
    reading.cancel();
    EXPECT_TRUE(read.untold());
    EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
}

TEST_F(io_uring_file_test, a_closed_file_ends_what_waits) {
    ASSERT_TRUE(file.close());
    EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
}

TEST_F(io_uring_file_test, a_result_that_comes_before_the_cancel_is_told) {
    ASSERT_TRUE(pipe.writer.write(const_buffer("abc", 3), patience));
    reading.cancel();
    EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    if (*read.value) {
        EXPECT_EQ(text_of(*read.value), "abc");
    } else {
        EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
        reading.reset();
        (void)reading.start();
        EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    }
}

TEST_F(io_uring_file_test, more_than_the_kernel_is_given_waits_and_is_cancelled_at_once) {
    std::deque<std::array<std::byte, 8>> room(400);
    std::deque<record_of<async_read>> told(400);
    std::deque<io_operation_connection<async_read, recorder<io_result<buffers>>>> reads;
    for (std::size_t i = 0; i < 400; ++i) {
        reads.push_back(connect(async_read(file, buffer(room[i])), recorder(told[i])));
        ASSERT_EQ(reads.back().start(), io_status::pending);
    }
    reads.back().cancel();
    EXPECT_EQ(multiplexer->complete_io().value(), 1);
    EXPECT_TRUE(told.back().done());
    // A place that becomes free is taken by one that waits.
    for (std::size_t i = 0; i < 10; ++i) {
        reads[i].cancel();
    }
    for (int n = 0; n < 10;) {
        n += multiplexer->try_run_for(patience).value();
    }
    ASSERT_TRUE(file.close());
    for (auto const& t : told) {
        while (!t.done()) {
            ASSERT_GT(multiplexer->try_run_for(patience).value(), 0);
        }
        EXPECT_EQ(t.value->error(), std::errc::operation_canceled);
    }
}

TEST_F(io_uring_file_test, a_deadline_ends_what_waits) {
    file_handle another = file_handle::adopt(::dup(static_cast<int>(file.native())));
    another.set_multiplexer(*multiplexer);
    record_of<async_read> limited;
    auto operation = connect(async_read(another, buffer(memory), 5ms), recorder(limited));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    EXPECT_EQ(limited.value->error(), std::errc::timed_out);
}

TEST_F(io_uring_file_test, another_thread_is_told_that_it_can_not_take_over_meanwhile) {
    std::thread([this] {
        EXPECT_EQ(multiplexer->complete_io().error(), std::errc::device_or_resource_busy);
    }).join();
    ASSERT_TRUE(pipe.writer.write(const_buffer("abc", 3), patience));
    EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    EXPECT_EQ(text_of(*read.value), "abc");
    // But when nothing is in flight it can.
    reading.reset();
    std::thread([this] {
        EXPECT_EQ(multiplexer->complete_io().value(), 0);
        ASSERT_EQ(reading.start(), io_status::pending);
        ASSERT_TRUE(pipe.writer.write(const_buffer("de", 2), patience));
        EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    }).join();
    EXPECT_EQ(text_of(*read.value), "de");
    EXPECT_EQ(multiplexer->complete_io().value(), 0);
}

TEST_F(io_uring_file_test, what_was_only_prepared_moves_to_the_ring_of_another_thread) {
    ASSERT_TRUE(pipe.writer.write(const_buffer("abc", 3), patience));
    EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    reading.reset();
    read = {};
    ASSERT_EQ(reading.start(), io_status::pending);
    std::thread([this] {
        EXPECT_EQ(multiplexer->complete_io().value(), -1);
        ASSERT_TRUE(pipe.writer.write(const_buffer("de", 2), patience));
        EXPECT_EQ(multiplexer->try_run_for(patience).value(), 1);
    }).join();
    EXPECT_EQ(text_of(*read.value), "de");
    EXPECT_EQ(multiplexer->complete_io().value(), 0);
}

}  // namespace
}  // namespace plumb::test
