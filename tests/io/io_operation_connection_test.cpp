// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation_connection.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>

#include "support/backend.hpp"

#include <array>
#include <memory>
#include <string>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// The phases of an operation, on every backend.
class io_operation_connection_test : public on_every_backend {
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
    auto reading(deadline limit = {}) {
        return connect(async_read(tcp.second, buffer(memory), limit), recorder(read));
    }
    template <class Operation>
    bool poll_until_completed(Operation& operation) {
        for (auto const end = now() + patience; now() < end;) {
            if (operation.poll() == io_status::completed) {
                return true;
            }
        }
        return false;
    }
};

INSTANTIATE_TEST_SUITE_P(backends, io_operation_connection_test, every_backend(), name_of_backend);

TEST_P(io_operation_connection_test, an_operation_is_small_and_fixed_in_size) {
    EXPECT_LE(sizeof(io_operation_connection<async_read, recorder<io_result<buffers>>>), 192u);
    EXPECT_LE(sizeof(io_operation_connection<async_write, recorder<io_result<const_buffers>>>),
              192u);
}

TEST_P(io_operation_connection_test, phases_are_seen_in_order) {
    auto operation = reading();
    EXPECT_FALSE(operation.started());
    EXPECT_FALSE(operation.completed());
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_TRUE(operation.started());
    EXPECT_FALSE(operation.completed());
    send("x");
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_TRUE(operation.started());
    EXPECT_TRUE(operation.completed());
    operation.reset();
    EXPECT_FALSE(operation.started());
    EXPECT_FALSE(operation.completed());
}

TEST_P(io_operation_connection_test, poll_delivers_what_completed_at_once) {
    auto operation = connect(async_read(tcp.second, buffer()), recorder(read));
    ASSERT_EQ(operation.start(), io_status::completed);
    ASSERT_TRUE(read.untold());
    EXPECT_EQ(operation.poll(), io_status::completed);
    EXPECT_EQ(read.values, 1);
    EXPECT_EQ(read.dones, 1);
    EXPECT_TRUE(operation.completed());
    EXPECT_EQ(operation.poll(), io_status::completed) << "polled again it tells nobody";
    EXPECT_EQ(read.dones, 1);
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

TEST_P(io_operation_connection_test, complete_io_delivers_what_completed_at_once) {
    auto operation = connect(async_read(tcp.second, buffer()), recorder(read));
    ASSERT_EQ(operation.start(), io_status::completed);
    EXPECT_EQ(multiplexer().complete_io().value(), 1);
    EXPECT_EQ(read.dones, 1);
    EXPECT_EQ(multiplexer().complete_io().value(), 0);
}

TEST_P(io_operation_connection_test, run_delivers_what_completed_at_once) {
    auto operation = connect(async_read(tcp.second, buffer()), recorder(read));
    ASSERT_EQ(operation.start(), io_status::completed);
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_EQ(read.dones, 1);
}

TEST_P(io_operation_connection_test, poll_does_the_io_when_it_is_ready) {
    auto operation = reading();
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_EQ(operation.poll(), io_status::pending);
    EXPECT_TRUE(read.untold());
    send("polled");
    ASSERT_TRUE(poll_until_completed(operation));
    EXPECT_EQ(text_of(*read.value), "polled");
    settle();
    EXPECT_EQ(read.dones, 1);
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

TEST_P(io_operation_connection_test, poll_alone_moves_many_messages) {
    auto operation = reading();
    for (int i = 0; i < 100; ++i) {
        (void)operation.start();
        send(std::to_string(i));
        ASSERT_TRUE(poll_until_completed(operation));
        EXPECT_EQ(text_of(*read.value), std::to_string(i));
        operation.reset();
    }
    EXPECT_EQ(read.dones, 100);
}

TEST_P(io_operation_connection_test, poll_ends_a_canceled_operation) {
    auto operation = reading();
    ASSERT_EQ(operation.start(), io_status::pending);
    operation.cancel();
    ASSERT_TRUE(poll_until_completed(operation));
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
}

TEST_P(io_operation_connection_test, poll_ends_an_operation_whose_deadline_is_over) {
    auto operation = reading(1ms);
    ASSERT_EQ(operation.start(), io_status::pending);
    record_of<async_wait> waited;
    auto m = another();
    auto sleep = connect(async_wait(*m, 2ms), recorder(waited));
    (void)sleep.start();
    ASSERT_TRUE(drive_until(*m, [&] { return waited.done(); }));
    ASSERT_TRUE(poll_until_completed(operation));
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
}

TEST_P(io_operation_connection_test, poll_before_the_start_does_nothing) {
    auto operation = reading();
    EXPECT_EQ(operation.poll(), io_status::pending);
    EXPECT_TRUE(read.untold());
    EXPECT_FALSE(operation.started());
}

TEST_P(io_operation_connection_test, a_receiver_may_poll_another_operation) {
    auto first = connect(async_read(tcp.second, buffer()), recorder(read));
    ASSERT_EQ(first.start(), io_status::completed);
    bool told = false;
    auto second = connect(async_read(tcp.first, buffer()),
                          calling_for<async_read>{[](auto&&) {}, [&] { told = true; }});
    record_of<async_read> third_read;
    auto third = connect(async_read(tcp.first, buffer()), recorder(third_read));
    ASSERT_EQ(second.start(), io_status::completed);
    ASSERT_EQ(third.start(), io_status::completed);
    EXPECT_EQ(second.poll(), io_status::completed);
    EXPECT_TRUE(told);
    EXPECT_EQ(multiplexer().complete_io().value(), 2);
    EXPECT_TRUE(read.done());
    EXPECT_TRUE(third_read.done());
}

TEST_P(io_operation_connection_test, a_receiver_may_destroy_any_operation_that_is_queued) {
    // Whatever is the last of the queue when it is delivered goes; what is started anew meanwhile
    // waits for the next turn.
    record_of<async_read> victim_read;
    using operation_type = io_operation_connection<async_read, calling_for<async_read>>;
    auto victim =
        std::make_unique<io_operation_connection<async_read, recorder<io_result<buffers>>>>(
            async_read(tcp.first, buffer()), recorder(victim_read));
    int rounds = 0;
    std::optional<operation_type> self;
    self.emplace(async_read(tcp.second, buffer()), calling_for<async_read>{[](auto&&) {},
                                                                           [&] {
                                                                               victim.reset();
                                                                               ++rounds;
                                                                               self->reset();
                                                                               (void)self->start();
                                                                           }});
    ASSERT_EQ(self->start(), io_status::completed);
    ASSERT_EQ(victim->start(), io_status::completed);
    EXPECT_EQ(multiplexer().complete_io().value(), 1);
    EXPECT_EQ(rounds, 1);
    EXPECT_TRUE(victim_read.untold());
}

TEST_P(io_operation_connection_test, deadline_and_bytes_at_once_give_one_of_both) {
    std::string received;
    std::string sent;
    for (int i = 0; i < 100; ++i) {
        read = {};
        auto operation = reading(std::chrono::microseconds(i));
        (void)operation.start();
        send("x");
        sent += "x";
        ASSERT_TRUE(drive_until([&] { return read.done(); }));
        if (*read.value) {
            received += text_of(*read.value);
        } else {
            ASSERT_EQ(read.value->error(), std::errc::timed_out);
        }
        settle();
        ASSERT_EQ(read.dones, 1);
    }
    while (received.size() < sent.size()) {
        auto const rest = tcp.second.read(buffer(memory), patience);
        ASSERT_TRUE(rest && rest.bytes_transferred() != 0);
        received += text_of(rest);
    }
    EXPECT_EQ(received, sent);
}

TEST_P(io_operation_connection_test, receivers_that_are_moved_in_may_be_move_only) {
    struct owning {
        std::unique_ptr<std::string> into;
        void set_value(io_result<buffers>&& r) noexcept { *into = text_of(r); }
        void set_done() noexcept {}
    };
    auto operation =
        connect(async_read(tcp.second, buffer(memory)), owning{std::make_unique<std::string>()});
    (void)operation.start();
    send("owned");
    ASSERT_TRUE(drive_until([&] { return operation.completed(); }));
    EXPECT_EQ(*operation.receiver().into, "owned");
}

}  // namespace
}  // namespace plumb::test
