// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/stream_socket_handle.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>

namespace plumb::test {
namespace {

// Each ends the process with a message that says what to do.
class handle_misuse : public on_every_backend {
protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        on_every_backend::SetUp();
    }
    std::array<std::byte, 16> memory{};
    record_of<async_read> read;
};

INSTANTIATE_TEST_SUITE_P(backends, handle_misuse, real_backends(), name_of_backend);

TEST_P(handle_misuse, choosing_another_multiplexer_after_the_first_use) {
    auto tcp = tcp_pair();
    auto operation = connect(async_read(tcp.second, buffer(memory)), recorder(read));
    (void)operation.start();
    auto const other = another();
    EXPECT_DEATH(tcp.second.set_multiplexer(*other), "after the handle's first asynchronous use");
}

}  // namespace
}  // namespace plumb::test
