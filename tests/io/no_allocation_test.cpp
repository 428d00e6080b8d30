// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation_connection.hpp>

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>

#include "support/allocations.hpp"
#include "support/backend.hpp"

#include <array>
#include <memory>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// A receiver that allocates nothing itself.
template <class Result>
struct quiet_receiver {
    bool* done;
    void set_value(Result&&) noexcept {}
    void set_done() noexcept { *done = true; }
};

class no_allocation : public on_every_backend {
protected:
    void drive(bool const& done) {
        while (!done) {
            ASSERT_TRUE(multiplexer().run());
        }
    }
    template <class Sender>
    void once(Sender const& sender) {
        bool done = false;
        auto operation = connect(sender, quiet_receiver<typename Sender::result_type>{&done});
        (void)operation.start();
        drive(done);
    }
};

INSTANTIATE_TEST_SUITE_P(backends, no_allocation, every_backend(), name_of_backend);

TEST(heap_allocations, are_counted) {
    auto const before = heap_allocations();
    auto const some = std::make_unique<std::vector<int>>(100);
    EXPECT_EQ(heap_allocations() - before, 2u) << some->size();
}

TEST_P(no_allocation, from_connect_to_done_even_the_first_time) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated network keeps bytes on the heap";
    }
    auto tcp = tcp_pair();
    std::array<std::byte, 64> memory;
    std::string const text = "ping";
    once(async_write(tcp.first, bytes_of(text)));  // the handle's registration may allocate
    bool done = false;
    auto warm =
        connect(async_read(tcp.second, buffer(memory)), quiet_receiver<io_result<buffers>>{&done});
    (void)warm.start();
    drive(done);

    auto const before = heap_allocations();
    for (int i = 0; i < 1000; ++i) {
        bool read = false;
        auto reading = connect(async_read(tcp.second, buffer(memory), 1h),
                               quiet_receiver<io_result<buffers>>{&read});
        (void)reading.start();
        once(async_write(tcp.first, bytes_of(text), 1h));
        drive(read);
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
}

TEST_P(no_allocation, by_timers_and_cancellation) {
    auto const before_warm = heap_allocations();
    once(async_wait(multiplexer(), 1us));
    if (simulated()) {
        EXPECT_GE(heap_allocations(), before_warm);
    }
    auto const before = heap_allocations();
    for (int i = 0; i < 200; ++i) {
        once(async_wait(multiplexer(), 1us));
        once(async_wait(multiplexer(), 0us));
        bool done = false;
        auto operation =
            connect(async_wait(multiplexer(), 1h), quiet_receiver<result<void>>{&done});
        (void)operation.start();
        operation.cancel();
        drive(done);
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
}

TEST_P(no_allocation, by_canceled_and_timed_out_reads) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated network keeps bytes on the heap";
    }
    auto tcp = tcp_pair();
    std::array<std::byte, 64> memory;
    once(async_read(tcp.second, buffer(memory), 0s));
    auto const before = heap_allocations();
    for (int i = 0; i < 200; ++i) {
        once(async_read(tcp.second, buffer(memory), 0s));
        once(async_read(tcp.second, buffer(memory), 10us));
        bool done = false;
        auto operation = connect(async_read(tcp.second, buffer(memory)),
                                 quiet_receiver<io_result<buffers>>{&done});
        (void)operation.start();
        operation.cancel();
        drive(done);
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
}

TEST_P(no_allocation, by_connections_that_come_and_go) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated network keeps connections on the heap";
    }
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    listener.set_multiplexer(multiplexer());
    auto const where = listener.local().value();
    auto const cycle = [&] {
        auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        client.set_multiplexer(multiplexer());
        bool accepted = false;
        auto accepting = connect(async_accept(listener),
                                 quiet_receiver<result<stream_socket_handle>>{&accepted});
        (void)accepting.start();
        once(async_connect(client, where));
        drive(accepted);
    };
    cycle();
    auto const before = heap_allocations();
    for (int i = 0; i < 100; ++i) {
        cycle();
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
}

TEST_P(no_allocation, by_posted_work) {
    struct counting : work {
        counting() : work([](work& w) noexcept { ++static_cast<counting&>(w).runs; }) {}
        int runs = 0;
    } item;
    auto const before = heap_allocations();
    for (int i = 0; i < 100; ++i) {
        multiplexer().post(item);
        ASSERT_EQ(multiplexer().run().value(), 1);
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
    EXPECT_EQ(item.runs, 100);
}

}  // namespace
}  // namespace plumb::test
