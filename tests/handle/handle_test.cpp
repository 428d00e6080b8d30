// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/handle.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>

namespace plumb::test {
namespace {

// What handles share once they are registered, on every backend.
class handle_test : public on_every_backend {
protected:
    std::array<std::byte, 16> memory{};
    record_of<async_read> read;
};

INSTANTIATE_TEST_SUITE_P(backends, handle_test, every_backend(), name_of_backend);

TEST_P(handle_test, release_is_refused_while_an_operation_is_in_flight) {
    auto tcp = tcp_pair();
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_EQ(tcp.second.release().error(), std::errc::device_or_resource_busy);
    EXPECT_TRUE(tcp.second.is_open());
    operation.cancel();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    auto const native = tcp.second.native();
    auto const released = tcp.second.release();
    ASSERT_TRUE(released) << released.error().message();
    EXPECT_EQ(*released, native);

    // The native handle is as good as before, also for another registration.
    auto adopted = stream_socket_handle::adopt(*released).value();
    adopted.set_multiplexer(multiplexer());
    read = {};
    auto again = connect(async_read(adopted, buffer(memory)), recorder(read));
    (void)again.start();
    ASSERT_TRUE(tcp.first.write(bytes_of("x"), patience));
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_P(handle_test, blocking_io_works_on_a_registered_handle) {
    auto tcp = tcp_pair();
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(tcp.first.write(bytes_of("one"), patience));
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    ASSERT_TRUE(tcp.first.write(bytes_of("two"), patience));
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "two");
    read = {};
    operation.reset();
    ASSERT_TRUE(tcp.first.write(bytes_of("three"), patience));
    (void)operation.start();
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(text_of(*read.value), "three");
}

TEST_P(handle_test, assigning_over_a_registered_handle_cancels_its_operations) {
    auto tcp = tcp_pair();
    auto other = tcp_pair();
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    ASSERT_EQ(operation.start(), io_status::pending);
    tcp.second = std::move(other.second);
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(read.value->error(), std::errc::operation_canceled);
    ASSERT_TRUE(other.first.write(bytes_of("x"), patience));
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "x");
}

TEST_P(handle_test, a_handle_may_outlive_its_multiplexer_and_be_closed) {
    auto tcp = tcp_pair();
    {
        auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
        ASSERT_EQ(operation.start(), io_status::pending);
        end_multiplexer();
    }
    EXPECT_EQ(tcp.second.multiplexer(), nullptr);
    EXPECT_TRUE(tcp.second.is_open());
    ASSERT_TRUE(tcp.first.write(bytes_of("x"), patience));
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "x") << "blocking i/o needs none";
    EXPECT_TRUE(tcp.second.close());
}

TEST_P(handle_test, a_handle_used_first_registers_with_the_one_it_was_set) {
    auto tcp = tcp_pair();
    EXPECT_EQ(tcp.first.multiplexer(), &multiplexer());
    tcp.first.set_multiplexer(multiplexer());
    auto moved = std::move(tcp.first);
    EXPECT_EQ(moved.multiplexer(), &multiplexer());
    EXPECT_TRUE(moved.close());
    EXPECT_EQ(moved.multiplexer(), nullptr);
}

}  // namespace
}  // namespace plumb::test
