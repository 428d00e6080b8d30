// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/zero_copy_write.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/task/task.hpp>

#include "support/context.hpp"

#include <memory>
#include <string>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class zero_copy_write_test : public on_every_context {
public:
    stream_socket_handle::pair tcp;
    std::string const text = std::string(256 * 1024, 'x');

protected:
    void SetUp() override {
        on_every_context::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            tcp = tcp_pair();
            tcp.first.set_multiplexer(context().multiplexer());
            tcp.second.set_multiplexer(context().multiplexer());
        }
    }

public:
    task<std::size_t> receive(std::size_t size) {
        std::vector<std::byte> memory(64 * 1024);
        std::size_t all = 0;
        while (all < size) {
            auto const r = co_await tcp.second.co_read(buffer(memory), patience);
            EXPECT_TRUE(r) << r.error().message();
            if (r.bytes_transferred() == 0) {
                break;
            }
            all += r.bytes_transferred();
        }
        co_return all;
    }
};

INSTANTIATE_TEST_SUITE_P(backends, zero_copy_write_test, every_backend(), name_of_backend);

TEST_P(zero_copy_write_test, gives_how_much_was_taken_and_then_the_buffer_back) {
    std::size_t total = 0;
    launch([](zero_copy_write_test& t, std::size_t& sent) -> task<> {
        zero_copy_write written(t.tcp.first, bytes_of(t.text));
        for (int i = 0; i < 20; ++i) {
            auto const moved = co_await written;
            EXPECT_TRUE(moved) << moved.error().message();
            sent += moved.bytes_transferred();
            EXPECT_TRUE(co_await written.released());
            EXPECT_TRUE(written.is_released());
            EXPECT_TRUE(co_await written.released()) << "twice";
            written.reset(bytes_of(t.text));
        }
        t.tcp.first.shutdown_write().value();
    }(*this, total));
    std::size_t received = 0;
    launch([](zero_copy_write_test& t, std::size_t& taken) -> task<> {
        taken = co_await t.receive(SIZE_MAX);
    }(*this, received));
    on_every_context::run();
    EXPECT_GT(total, 0u);
    EXPECT_EQ(received, total);
}

TEST_P(zero_copy_write_test, a_stop_ends_the_wait_for_the_release_and_not_the_hold) {
    stop_source stop(executor());
    launch([](stop_source& request) -> task<> {
        (void)co_await co_wait(100ms);
        request.request_stop();
    }(stop));
    launch(
        [](zero_copy_write_test& t) -> task<> {
            std::vector<std::unique_ptr<zero_copy_write>> writes;
            do {
                writes.push_back(std::make_unique<zero_copy_write>(t.tcp.first, bytes_of(t.text)));
                (void)co_await *writes.back();
            } while (writes.back()->is_released() && writes.size() < 1000);
            zero_copy_write& last = *writes.back();
            bool const held = !last.is_released();
            auto const released = co_await last.released();
            EXPECT_EQ(released.has_value(), last.is_released());
            EXPECT_EQ(held, !released.has_value())
                << "nobody reads, so it can't have been released";
            (void)t.tcp.second.close();  // which makes the kernel let go
        }(*this),
        stop.token());
    on_every_context::run();
}

}  // namespace
}  // namespace plumb::test
