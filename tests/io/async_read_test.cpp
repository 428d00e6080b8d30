// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_read.hpp>

#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class async_read_test : public on_every_backend {
protected:
    stream_socket_handle::pair tcp;
    std::array<std::byte, 64> memory{};
    record_of<async_read> read;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            tcp = tcp_pair();
        }
    }
    void send(std::string const& text) {
        ASSERT_EQ(tcp.first.write(bytes_of(text), patience).bytes_transferred(), text.size());
    }
    bool await_read() {
        return drive_until([&] { return read.done(); });
    }
};

INSTANTIATE_TEST_SUITE_P(backends, async_read_test, every_backend(), name_of_backend);

TEST_P(async_read_test, completes_with_the_bytes_that_arrive_later) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    EXPECT_EQ(operation.start(), io_status::pending);
    settle();
    EXPECT_TRUE(read.untold());
    send("hello");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "hello");
    EXPECT_EQ((*read.value)->begin().operator*().data(), memory.data());
}

TEST_P(async_read_test, start_never_tells_even_when_bytes_are_there) {
    send("hello");
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    (void)operation.start();
    EXPECT_TRUE(read.untold());
    EXPECT_TRUE(operation.started());
    EXPECT_FALSE(operation.completed());
    ASSERT_TRUE(await_read());
    EXPECT_TRUE(operation.completed());
    EXPECT_EQ(text_of(*read.value), "hello");
}

TEST_P(async_read_test, reads_again_after_each_short_read) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    for (std::string const text : {"one", "two", "three", "four"}) {
        send(text);
        (void)operation.start();
        ASSERT_TRUE(await_read()) << text;
        EXPECT_EQ(text_of(*read.value), text);
        read = {};
        operation.reset();
        EXPECT_FALSE(operation.started());
    }
}

TEST_P(async_read_test, waits_after_each_short_read) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    for (std::string const text : {"one", "two", "three", "four"}) {
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
        ASSERT_TRUE(read.untold());
        send(text);
        ASSERT_TRUE(await_read()) << text;
        EXPECT_EQ(text_of(*read.value), text);
        read = {};
        operation.reset();
    }
}

TEST_P(async_read_test, takes_what_was_sent_in_pieces_as_large_as_its_buffer) {
    send("abcdefgh");
    std::string all;
    auto operation = connect(async_read(tcp.second, buffer(memory).first(3)), recorder(read));
    while (all.size() < 8) {
        (void)operation.start();
        ASSERT_TRUE(await_read());
        all += text_of(*read.value);
        read = {};
        operation.reset();
    }
    EXPECT_EQ(all, "abcdefgh");
}

TEST_P(async_read_test, fills_several_buffers_in_order) {
    std::array<std::byte, 3> a;
    std::array<std::byte, 4> b;
    std::array<buffer, 2> const list{buffer(a), buffer(b)};
    auto operation = connect(async_read(tcp.second, buffers(list)), recorder(read));
    EXPECT_EQ(operation.start(), io_status::pending);
    send("abcde");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->bytes_transferred(), 5u);
    EXPECT_EQ((*read.value)->size(), 2u);
    EXPECT_EQ(text_of(*read.value), "abcde");
    EXPECT_EQ(list[1].size(), 4u) << "the caller's array was changed";
}

TEST_P(async_read_test, reads_all_of_more_buffers_than_one_call_takes) {
    constexpr std::size_t count = 3000;
    std::vector<std::byte> bytes(count);
    std::vector<buffer> list;
    for (auto& b : bytes) {
        list.emplace_back(&b, 1);
    }
    send(std::string(count, 'x'));
    std::size_t got = 0;
    auto operation = connect(async_read(tcp.second, buffers(list)), recorder(read));
    while (got < count) {
        (void)operation.start();
        ASSERT_TRUE(await_read()) << got;
        ASSERT_TRUE(*read.value) << read.value->error().message();
        got += read.value->bytes_transferred();
        read = {};
        operation.reset();
    }
    EXPECT_EQ(got, count);
}

TEST_P(async_read_test, does_not_read_beyond_a_trimmed_list) {
    std::array<std::byte, 3> a{};
    std::array<std::byte, 4> b{};
    std::array<buffer, 2> const list{buffer(a), buffer(b)};
    send("abcdefg");
    std::string all;
    auto operation = connect(async_read(tcp.second, buffers(list).first(5)), recorder(read));
    (void)operation.start();
    ASSERT_TRUE(await_read());
    all = text_of(*read.value);
    EXPECT_GE(all.size(), 1u);
    EXPECT_LE(all.size(), 5u);
    EXPECT_EQ(b[2], std::byte{0}) << "was written beyond the list's end";
    read = {};
    auto rest = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    (void)rest.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(all + text_of(*read.value), "abcdefg") << "bytes were lost";
}

TEST_P(async_read_test, end_of_stream_is_success_with_no_bytes_again_and_again) {
    send("last");
    ASSERT_TRUE(tcp.first.shutdown_write());
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    for (std::string const expected : {"last", "", "", ""}) {
        (void)operation.start();
        ASSERT_TRUE(await_read());
        ASSERT_TRUE(*read.value) << read.value->error().message();
        EXPECT_EQ(text_of(*read.value), expected);
        read = {};
        operation.reset();
    }
}

TEST_P(async_read_test, end_of_stream_ends_a_read_that_waits) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    ASSERT_TRUE(tcp.first.close());
    ASSERT_TRUE(await_read());
    ASSERT_TRUE(*read.value);
    EXPECT_EQ(read.value->bytes_transferred(), 0u);
}

TEST_P(async_read_test, bytes_and_end_that_arrive_together_are_both_read) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    send("bye");
    ASSERT_TRUE(tcp.first.close());
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "bye");
    read = {};
    operation.reset();
    (void)operation.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->bytes_transferred(), 0u);
    EXPECT_TRUE(*read.value);
}

TEST_P(async_read_test, one_direction_may_end_before_the_other) {
    ASSERT_TRUE(tcp.first.shutdown_write());
    ASSERT_TRUE(tcp.first.shutdown_write()) << "twice is allowed";
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    (void)operation.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->bytes_transferred(), 0u);

    record_of<async_write> written;
    std::string const answer = "answer";
    auto write = connect(async_write(tcp.second, bytes_of(answer)), recorder(written));
    (void)write.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    EXPECT_EQ(written.value->bytes_transferred(), answer.size());
    EXPECT_EQ(text_of(tcp.first.read(buffer(memory), patience)), answer);
}

TEST_P(async_read_test, an_empty_request_completes_at_once_with_no_bytes) {
    auto operation = connect(async_read(tcp.second, buffer()), recorder(read));
    EXPECT_EQ(operation.start(), io_status::completed);
    EXPECT_TRUE(read.untold());
    ASSERT_TRUE(await_read());
    ASSERT_TRUE(*read.value);
    EXPECT_EQ(read.value->bytes_transferred(), 0u);
}

TEST_P(async_read_test, a_reset_connection_is_an_error) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    ASSERT_TRUE(tcp.first.set_reset_on_close());
    ASSERT_TRUE(tcp.first.close());
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::connection_reset);
    read = {};
    operation.reset();
    (void)operation.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->bytes_transferred(), 0u)
        << "a reset is reported once, then it is the end";
}

TEST_P(async_read_test, a_second_reader_is_told_that_the_handle_is_busy) {
    record_of<async_read> second;
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    auto late = connect(async_read(tcp.second, buffer(memory)), recorder(second));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_EQ(late.start(), io_status::completed);
    ASSERT_TRUE(drive_until([&] { return second.done(); }));
    EXPECT_EQ(second.value->error(), std::errc::device_or_resource_busy);
    EXPECT_TRUE(read.untold());
    send("x");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_P(async_read_test, reading_and_writing_at_once_are_independent) {
    record_of<async_write> written;
    std::string const text = "over";
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    auto write = connect(async_write(tcp.second, bytes_of(text)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    (void)write.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    EXPECT_TRUE(read.untold());
    send("back");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "back");
}

TEST_P(async_read_test, a_closed_handle_is_an_error) {
    stream_socket_handle closed;
    closed.set_multiplexer(multiplexer());
    auto operation = connect(async_read(closed, buffer(memory)), recorder(read));
    EXPECT_EQ(operation.start(), io_status::completed);
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::bad_file_descriptor);
}

TEST_P(async_read_test, the_handle_may_move_while_it_reads) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    auto moved = std::make_unique<stream_socket_handle>(std::move(tcp.second));
    EXPECT_EQ(moved->multiplexer(), &multiplexer());
    settle();
    send("found");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "found");
}

TEST_P(async_read_test, closing_the_handle_ends_the_read_as_canceled) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    EXPECT_TRUE(tcp.second.close());
    EXPECT_TRUE(read.untold()) << "closing calls no receiver";
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
}

TEST_P(async_read_test, a_reused_descriptor_gets_nothing_of_the_one_before) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    send("stale");  // an event for the old descriptor is on its way
    auto const native = tcp.second.native();
    EXPECT_TRUE(tcp.second.close());
    auto fresh = tcp_pair();
    if (!simulated()) {
        EXPECT_TRUE(fresh.first.native() == native || fresh.second.native() == native);
    }
    record_of<async_read> later_first;
    record_of<async_read> later_second;
    std::array<std::byte, 8> more;
    auto first = connect(async_read(fresh.first, buffer(more)), recorder(later_first));
    auto second = connect(async_read(fresh.second, buffer(more)), recorder(later_second));
    ASSERT_EQ(first.start(), io_status::pending);
    ASSERT_EQ(second.start(), io_status::pending);
    ASSERT_TRUE(await_read());
    settle();
    EXPECT_TRUE(later_first.untold());
    EXPECT_TRUE(later_second.untold());
    ASSERT_TRUE(fresh.first.write(bytes_of("new"), patience));
    ASSERT_TRUE(drive_until([&] { return later_second.done(); }));
    EXPECT_EQ(text_of(*later_second.value), "new");
}

TEST_P(async_read_test, the_hang_up_of_a_duplicate_of_a_closed_descriptor_reaches_nobody) {
    if (simulated()) {
        GTEST_SKIP() << "simulated descriptors are not duplicated";
    }
    auto operation = connect(async_read(tcp.first, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    int const duplicate = ::dup(static_cast<int>(tcp.first.native()));
    ASSERT_GE(duplicate, 0);
    ASSERT_TRUE(tcp.first.close());
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);

    auto other = tcp_pair();  // in the place of what was closed
    read = {};
    auto next = connect(async_read(other.first, buffer(memory)), recorder(read));
    ASSERT_EQ(next.start(), io_status::pending);
    ASSERT_TRUE(tcp.second.close());
    EXPECT_LT(multiplexer().try_run_for(5ms).value(), 0) << "nothing is ready";
    EXPECT_TRUE(read.untold());
    EXPECT_EQ(::close(duplicate), 0);
    ASSERT_TRUE(other.second.write(bytes_of("x"), patience));
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_P(async_read_test, a_descriptor_closed_by_a_receiver_of_the_same_turn_gets_nothing) {
    // Both sockets are ready in one turn; the receiver of the one that is told first closes the other
    // and opens new sockets in its place.
    auto other = tcp_pair();
    record_of<async_read> second;
    std::optional<stream_socket_handle::pair> fresh;
    record_of<async_read> third;
    std::array<std::byte, 8> more;
    auto const replace = [&](stream_socket_handle& victim) {
        if (!fresh) {
            (void)victim.close();
            fresh = tcp_pair();
        }
    };
    auto a = connect(async_read(tcp.second, buffer(memory)),
                     calling_for<async_read>{
                         [&](io_result<buffers>&& r) { recorder(read).set_value(std::move(r)); },
                         [&] {
                             recorder(read).set_done();
                             replace(other.second);
                         }});
    auto b = connect(async_read(other.second, buffer(memory)),
                     calling_for<async_read>{
                         [&](io_result<buffers>&& r) { recorder(second).set_value(std::move(r)); },
                         [&] {
                             recorder(second).set_done();
                             replace(tcp.second);
                         }});
    ASSERT_EQ(a.start(), io_status::pending);
    ASSERT_EQ(b.start(), io_status::pending);
    settle();
    send("x");
    ASSERT_TRUE(other.first.write(bytes_of("y"), patience));
    ASSERT_TRUE(drive_until([&] { return read.done() && second.done(); }));
    ASSERT_TRUE(fresh);
    auto c = connect(async_read(fresh->second, buffer(more)), recorder(third));
    ASSERT_EQ(c.start(), io_status::pending);
    settle();
    EXPECT_TRUE(third.untold());
}

TEST_P(async_read_test, a_pipe_is_read_and_its_end_seen) {
    auto ends = pipe();
    auto operation = connect(async_read(ends.reader, buffer(memory)), recorder(read));
    for (std::string const text : {"one", "two"}) {
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
        ASSERT_TRUE(ends.writer.write(bytes_of(text), patience));
        ASSERT_TRUE(await_read());
        EXPECT_EQ(text_of(*read.value), text);
        read = {};
        operation.reset();
    }
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(ends.writer.close());
    ASSERT_TRUE(await_read());
    ASSERT_TRUE(*read.value);
    EXPECT_EQ(read.value->bytes_transferred(), 0u);
}

// Deadlines.

TEST_P(async_read_test, a_deadline_of_zero_takes_what_is_there) {
    send("here");
    // The bytes need a moment from one socket to the other.
    ASSERT_TRUE(drive_until([&] { return true; }));
    auto operation = connect(async_read(tcp.second, buffer(memory), 0s), recorder(read));
    (void)operation.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "here");
}

TEST_P(async_read_test, a_deadline_of_zero_is_timed_out_at_once_when_nothing_is_there) {
    auto const before = now();
    auto operation = connect(async_read(tcp.second, buffer(memory), 0s), recorder(read));
    (void)operation.start();
    EXPECT_TRUE(read.untold());
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
    EXPECT_LT(now() - before, 1s);
}

TEST_P(async_read_test, the_try_forms_are_those_of_the_blocking_call) {
    auto const before = now();
    for (auto const& sender :
         {async_read::try_async_read(tcp.second, buffer(memory)),
          async_read::try_async_read_for(tcp.second, buffer(memory), 20ms),
          async_read::try_async_read_until(tcp.second, buffer(memory), before + 30ms)}) {
        read = {};
        auto operation = connect(sender, recorder(read));
        (void)operation.start();
        ASSERT_TRUE(await_read());
        EXPECT_EQ(read.value->error(), std::errc::timed_out);
    }
    EXPECT_GE(now() - before, 30ms);
}

TEST_P(async_read_test, a_deadline_in_the_past_is_as_zero) {
    auto operation = connect(async_read(tcp.second, buffer(memory), now() - 1s), recorder(read));
    (void)operation.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
    read = {};
    auto system =
        connect(async_read(tcp.second, buffer(memory), system_now() - 1s), recorder(read));
    (void)system.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
}

TEST_P(async_read_test, is_timed_out_at_its_deadline_and_not_before) {
    for (int clock = 0; clock < 3; ++clock) {
        auto const before = now();
        deadline const limit = clock == 0   ? deadline(20ms)
                               : clock == 1 ? deadline(before + 20ms)
                                            : deadline(system_now() + 20ms);
        read = {};
        auto operation = connect(async_read(tcp.second, buffer(memory), limit), recorder(read));
        ASSERT_EQ(operation.start(), io_status::pending);
        ASSERT_TRUE(await_read());
        EXPECT_EQ(read.value->error(), std::errc::timed_out);
        // The system's clock may be slewed against the steady one.
        EXPECT_GE(now() - before, clock == 2 ? 19ms : 20ms);
    }
}

TEST_P(async_read_test, bytes_before_the_deadline_end_it) {
    auto operation = connect(async_read(tcp.second, buffer(memory), 1h), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    send("soon");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "soon");
    EXPECT_EQ(multiplexer().try_run().value(), 0) << "the deadline is still pending";
}

TEST_P(async_read_test, bytes_after_a_timed_out_read_are_not_lost) {
    auto operation = connect(async_read(tcp.second, buffer(memory), 1ms), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(await_read());
    ASSERT_EQ(read.value->error(), std::errc::timed_out);
    read = {};
    operation.reset();
    send("late");
    auto again = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    (void)again.start();
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "late");
}

// Cancellation.

TEST_P(async_read_test, cancel_ends_it_without_calling_the_receiver) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    operation.cancel();
    operation.cancel();
    EXPECT_TRUE(read.untold());
    ASSERT_TRUE(await_read());
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
    operation.cancel();
    settle();
    EXPECT_EQ(read.dones, 1);
}

TEST_P(async_read_test, cancel_before_the_start_does_nothing) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    operation.cancel();
    ASSERT_EQ(operation.start(), io_status::pending);
    send("x");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_P(async_read_test, cancel_and_completion_give_one_of_both_and_lose_no_byte) {
    std::string sent;
    std::string received;
    for (int i = 0; i < 200; ++i) {
        read = {};
        auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
        (void)operation.start();
        if (i % 3 == 0) {
            settle();
        }
        std::string const text = std::to_string(i) + ' ';
        send(text);
        sent += text;
        operation.cancel();
        ASSERT_TRUE(await_read());
        if (*read.value) {
            received += text_of(*read.value);
        } else {
            ASSERT_EQ(read.value->error(), std::errc::operation_canceled);
        }
    }
    while (received.size() < sent.size()) {
        auto const rest = tcp.second.read(buffer(memory), patience);
        ASSERT_TRUE(rest && rest.bytes_transferred() != 0);
        received += text_of(rest);
    }
    EXPECT_EQ(received, sent);
}

TEST_P(async_read_test, a_canceled_read_leaves_the_handle_usable) {
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(operation.start(), io_status::pending);
        operation.cancel();
        ASSERT_TRUE(await_read());
        ASSERT_EQ(read.value->error(), std::errc::operation_canceled);
        read = {};
        operation.reset();
    }
    (void)operation.start();
    send("x");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "x");
}

// Lifetime.

TEST_P(async_read_test, destroyed_while_pending_it_tells_nobody_and_frees_its_buffer) {
    auto own = std::make_unique<std::array<std::byte, 16>>();
    {
        auto operation = connect(async_read(tcp.second, buffer(*own)), recorder(read));
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
    }
    own.reset();
    send("nobody reads it into freed memory");
    settle();
    EXPECT_TRUE(read.untold());
    EXPECT_EQ(multiplexer().try_run().value(), 0);
    EXPECT_EQ(tcp.second.read(buffer(memory), patience).bytes_transferred(), 33u);
}

TEST_P(async_read_test, destroyed_while_queued_it_tells_nobody) {
    {
        auto operation = connect(async_read(tcp.second, buffer()), recorder(read));
        ASSERT_EQ(operation.start(), io_status::completed);
    }
    settle();
    EXPECT_TRUE(read.untold());
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

TEST_P(async_read_test, destroyed_after_a_cancel_it_tells_nobody) {
    {
        auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
        operation.cancel();
    }
    settle();
    EXPECT_TRUE(read.untold());
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

TEST_P(async_read_test, a_receiver_may_destroy_its_own_operation_when_done) {
    using operation_type = io_operation_connection<async_read, calling_for<async_read>>;
    std::unique_ptr<operation_type> operation;
    bool told = false;
    calling_for<async_read> receiver;
    receiver.done = [&] {
        auto const gone_last = std::move(operation);
        told = true;
    };
    operation = std::make_unique<operation_type>(async_read(tcp.second, buffer(memory)), receiver);
    ASSERT_EQ(operation->start(), io_status::pending);
    send("x");
    ASSERT_TRUE(drive_until([&] { return told; }));
    EXPECT_EQ(operation, nullptr);
}

TEST_P(async_read_test, a_receiver_may_start_again_when_done) {
    int rounds = 0;
    std::string all;
    std::optional<io_operation_connection<async_read, calling_for<async_read>>> operation;
    operation.emplace(async_read(tcp.second, buffer(memory).first(1)),
                      calling_for<async_read>{[&](io_result<buffers>&& r) { all += text_of(r); },
                                              [&] {
                                                  if (++rounds < 5) {
                                                      operation->reset();
                                                      (void)operation->start();
                                                  }
                                              }});
    (void)operation->start();
    send("abcde");
    ASSERT_TRUE(drive_until([&] { return rounds == 5; }));
    EXPECT_EQ(all, "abcde");
}

TEST_P(async_read_test, may_move_before_the_start) {
    auto operation = connect(async_read(tcp.second, buffer(memory), 1h), recorder(read));
    auto moved = std::make_unique<decltype(operation)>(std::move(operation));
    EXPECT_FALSE(operation.started());
    ASSERT_EQ(moved->start(), io_status::pending);
    send("x");
    ASSERT_TRUE(await_read());
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_P(async_read_test, the_multiplexer_may_end_first) {
    auto queued_handles = tcp_pair();
    record_of<async_read> queued_read;
    auto pending = connect(async_read(tcp.second, buffer(memory), 1h), recorder(read));
    auto queued = connect(async_read(queued_handles.second, buffer()), recorder(queued_read));
    ASSERT_EQ(pending.start(), io_status::pending);
    ASSERT_EQ(queued.start(), io_status::completed);
    end_multiplexer();
    EXPECT_TRUE(read.untold());
    EXPECT_TRUE(queued_read.untold());
    EXPECT_EQ(tcp.second.multiplexer(), nullptr);
    EXPECT_TRUE(tcp.second.close());
}

}  // namespace
}  // namespace plumb::test
