// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/atomic_sender.hpp>

#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class atomic_sender_test : public on_every_backend {
protected:
    pipe_handle::ends ends;
    std::array<std::byte, 64> memory{};
    record_of<async_read> read;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            ends = pipe();
        }
    }
    void send(std::string const& text) {
        ASSERT_EQ(ends.writer.write(bytes_of(text), patience).bytes_transferred(), text.size());
    }
    auto reading() {
        return connect(atomic_async_read(ends.reader, buffer(memory)), recorder(read));
    }
};

INSTANTIATE_TEST_SUITE_P(backends, atomic_sender_test, every_backend(), name_of_backend);

TEST_P(atomic_sender_test, begins_when_the_multiplexer_comes_by) {
    auto operation = reading();
    EXPECT_EQ(operation.start(), io_status::pending);
    EXPECT_TRUE(operation.started());
    send("hello");
    EXPECT_TRUE(read.untold());
    while (!read.done()) {
        ASSERT_NE(multiplexer().complete_io().value(), 0);
    }
    EXPECT_TRUE(operation.completed());
    EXPECT_EQ(text_of(*read.value), "hello");
}

TEST_P(atomic_sender_test, the_try_forms_are_atomic_too) {
    auto const before = now();
    for (atomic_async_read const& sender :
         {atomic_async_read::try_async_read(ends.reader, buffer(memory)),
          atomic_async_read::try_async_read_for(ends.reader, buffer(memory), 2ms),
          atomic_async_read::try_async_read_until(ends.reader, buffer(memory), before + 3ms)}) {
        read = {};
        auto operation = connect(sender, recorder(read));
        std::thread([&] { (void)operation.start(); }).join();
        ASSERT_TRUE(drive_until([&] { return read.done(); }));
        EXPECT_EQ(read.value->error(), std::errc::timed_out);
    }
    EXPECT_GE(now() - before, 3ms);

    using connected =
        io_operation_connection<atomic_async_write, recorder<io_result<const_buffers>>>;
    record_of<async_write> written;
    std::string const text = "x";
    for (auto const& sender :
         {atomic_async_write::try_async_write(ends.writer, bytes_of(text)),
          atomic_async_write::try_async_write_for(ends.writer, bytes_of(text), 1s),
          atomic_async_write::try_async_write_until(ends.writer, bytes_of(text), now() + 1s)}) {
        written = {};
        connected operation = connect(sender, recorder(written));
        std::thread([&] { (void)operation.start(); }).join();
        ASSERT_TRUE(drive_until([&] { return written.done(); }));
        EXPECT_EQ(written.value->bytes_transferred(), 1u);
    }
    static_assert(std::same_as<atomic_async_barrier,
                               decltype(atomic_async_barrier::try_async_barrier(ends.writer))>);
    auto const kind = barrier_kind::wait_all;
    static_assert(
        std::same_as<atomic_async_barrier, decltype(atomic_async_barrier::try_async_barrier_for(
                                               ends.writer, {}, kind, 1s))>);
    static_assert(
        std::same_as<atomic_async_barrier, decltype(atomic_async_barrier::try_async_barrier_until(
                                               ends.writer, {}, kind, before))>);
}

TEST_P(atomic_sender_test, is_completed_by_poll_alone) {
    auto operation = reading();
    EXPECT_EQ(operation.poll(), io_status::pending) << "before its start";
    (void)operation.start();
    EXPECT_EQ(operation.poll(), io_status::pending);
    send("hello");
    while (operation.poll() == io_status::pending) {
    }
    EXPECT_EQ(text_of(*read.value), "hello");
    EXPECT_EQ(operation.poll(), io_status::completed) << "told twice";
    EXPECT_EQ(read.dones, 1);
}

TEST_P(atomic_sender_test, begins_at_once_inside_the_multiplexer) {
    send("hello");
    auto second = reading();
    auto first = connect(async_wait(multiplexer(), 0s), calling_for<async_wait>{[&](auto&&) {
                             (void)second.start();
                             ASSERT_EQ(multiplexer().complete_io().value(), 1)
                                 << "it was not begun";
                         }});
    (void)first.start();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
}

TEST_P(atomic_sender_test, can_be_reset_and_used_again) {
    auto operation = reading();
    for (std::string const text : {"one", "two", "three"}) {
        (void)operation.start();
        send(text);
        ASSERT_TRUE(drive_until([&] { return read.done(); }));
        EXPECT_EQ(text_of(*read.value), text);
        read = {};
        operation.reset();
        EXPECT_FALSE(operation.started());
        EXPECT_FALSE(operation.completed());
    }
}

TEST_P(atomic_sender_test, cancelled_before_it_begins_does_nothing) {
    send("hello");
    auto operation = reading();
    (void)operation.start();
    operation.cancel();
    operation.cancel();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
    EXPECT_EQ(ends.reader.read(buffer(memory), patience).bytes_transferred(), 5u);
}

TEST_P(atomic_sender_test, cancelled_while_it_waits_ends_early) {
    auto operation = reading();
    (void)operation.start();
    settle();
    operation.cancel();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
    operation.cancel();
    EXPECT_EQ(multiplexer().run().value(), 0) << "something was left behind";
}

TEST_P(atomic_sender_test, an_end_that_meets_its_cancellation_is_told_once_and_with_its_result) {
    auto others = pipe();
    auto operation = reading();
    std::array<std::byte, 1> byte;
    // Both end in one turn, and whichever is first cancels the other.
    record_of<async_read> other;
    auto first =
        connect(async_read(others.reader, buffer(byte)), calling_for<async_read>{[&](auto&& r) {
                    operation.cancel();
                    other.value.emplace(std::move(r));
                }});
    (void)operation.start();
    (void)first.start();
    settle();
    send("hello");
    ASSERT_TRUE(others.writer.write(bytes_of(std::string("x")), patience));
    ASSERT_TRUE(drive_until([&] { return read.done() && other.value.has_value(); }));
    EXPECT_TRUE(*read.value ? text_of(*read.value) == "hello"
                            : read.value->error() == std::errc::operation_canceled);
    EXPECT_TRUE(operation.completed());
    EXPECT_EQ(multiplexer().run().value(), 0);
    EXPECT_EQ(read.dones, 1);
}

TEST_P(atomic_sender_test, keeps_its_deadline) {
    auto operation = connect(atomic_async_read(ends.reader, buffer(memory), 5ms), recorder(read));
    (void)operation.start();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
}

TEST_P(atomic_sender_test, may_be_destroyed_on_its_way_or_while_it_waits) {
    for (bool const begun : {false, true}) {
        auto operation = std::make_unique<decltype(reading())>(reading());
        (void)operation->start();
        if (begun) {
            settle();
            operation->cancel();
        }
        operation.reset();
        EXPECT_EQ(multiplexer().run().value(), 0);
        EXPECT_TRUE(read.untold());
    }
    send("hello");
    EXPECT_EQ(ends.reader.read(buffer(memory), patience).bytes_transferred(), 5u);
}

TEST_P(atomic_sender_test, may_outlive_its_multiplexer_without_having_begun) {
    auto operation = reading();
    (void)operation.start();
    end_multiplexer();
    EXPECT_TRUE(read.untold());
}

TEST_P(atomic_sender_test, is_told_of_a_handle_that_was_closed_meanwhile) {
    auto operation = reading();
    (void)operation.start();
    (void)ends.reader.close();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::bad_file_descriptor);
}

TEST_P(atomic_sender_test, connects_accepts_and_writes) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    listener.set_multiplexer(multiplexer());
    client.set_multiplexer(multiplexer());
    record_of<async_accept> accepted;
    record_of<async_connect> connected;
    record_of<async_write> written;
    auto accepting = connect(atomic_async_accept(listener), recorder(accepted));
    auto connecting =
        connect(atomic_async_connect(client, listener.local().value()), recorder(connected));
    (void)accepting.start();
    (void)connecting.start();
    ASSERT_TRUE(drive_until([&] { return accepted.done() && connected.done(); }));
    ASSERT_TRUE(*connected.value);
    auto& server = accepted.value->value();
    std::string const text = "hello";
    auto writing = connect(atomic_async_write(client, bytes_of(text)), recorder(written));
    (void)writing.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    EXPECT_EQ(server.read(buffer(memory), patience).bytes_transferred(), text.size());
}

class atomic_sender_of_threads : public atomic_sender_test {};
INSTANTIATE_TEST_SUITE_P(backends, atomic_sender_of_threads, real_backends(), name_of_backend);

TEST_P(atomic_sender_of_threads, started_elsewhere_wakes_the_thread_that_drives) {
    auto operation = reading();
    multiplexer().work_started();
    std::thread elsewhere([&] {
        (void)operation.start();
        send("hello");
    });
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    elsewhere.join();
    multiplexer().work_finished();
    EXPECT_EQ(text_of(*read.value), "hello");
}

// Ends that come by themselves, by cancellation from the same thread and by both at once.
TEST_P(atomic_sender_of_threads, started_and_cancelled_by_many_is_told_exactly_once_each) {
    constexpr int threads = 4;
    constexpr int rounds = 300;
    struct told {
        std::atomic<int>* values;
        std::atomic<int>* dones;
        void set_value(result<void>&&) noexcept { ++*values; }
        void set_done() noexcept { ++*dones; }
    };
    std::atomic<int> values{0};
    std::atomic<int> dones{0};
    using operation = decltype(connect(atomic_async_wait(multiplexer(), 1us), told{}));
    std::vector<std::vector<std::unique_ptr<operation>>> all(threads);
    multiplexer().work_started();
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
        running.emplace_back([&, t] {
            for (int i = 0; i < rounds; ++i) {
                bool const cancelled = i % 2 != 0;
                auto const when = i % 3 == 0 ? deadline() : deadline(std::chrono::microseconds(i));
                auto made = std::make_unique<operation>(
                    atomic_async_wait(multiplexer(), cancelled ? when : deadline(10us)),
                    told{&values, &dones});
                (void)made->start();
                if (cancelled) {
                    made->cancel();
                }
                all[static_cast<std::size_t>(t)].push_back(std::move(made));
            }
        });
    }
    EXPECT_TRUE(drive_until([&] { return dones == threads * rounds; }));
    for (auto& thread : running) {
        thread.join();
    }
    multiplexer().work_finished();
    EXPECT_EQ(multiplexer().run().value(), 0);
    EXPECT_EQ(values, threads * rounds);
    EXPECT_EQ(dones, threads * rounds);
}

}  // namespace
}  // namespace plumb::test
