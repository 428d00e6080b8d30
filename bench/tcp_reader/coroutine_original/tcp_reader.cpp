// SPDX-License-Identifier: Apache-2.0
//
// A coroutine whose reads all come through the queue, also those that are over at once.
#include "../coroutine.hpp"

#include <plumb/io/io_operation_connection.hpp>

namespace {

class [[nodiscard]] queued_read {
public:
    queued_read(plumb::stream_socket_handle& from, std::byte* to, std::size_t most) noexcept
        : read_(plumb::async_read(from, plumb::buffers(to, most)), receiver{this}) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h, plumb::io_env const&) noexcept {
        waiting_ = h;
        (void)read_.start();
    }
    std::size_t await_resume() const { return result_.value().bytes(); }

private:
    struct receiver {
        queued_read* self;
        void set_value(plumb::io_result<plumb::buffers>&& r) const noexcept {
            self->result_ = std::move(r);
        }
        void set_done() const noexcept { self->waiting_.resume(); }
    };

    std::coroutine_handle<> waiting_;
    plumb::io_result<plumb::buffers> result_;
    plumb::io_operation_connection<plumb::async_read, receiver> read_;
};

plumb::task<int> tcp_reader(reader_options o) {
    std::byte buffer[reader_most_block];
    auto socket =
        plumb::stream_socket_handle::stream_socket(plumb::endpoint::family_type::ipv4).value();
    (co_await socket.co_connect(plumb::endpoint::loopback_v4(o.port))).value();
    reader_meter meter = reader_begin(&o);
    for (;;) {
        std::size_t const got = co_await queued_read(socket, buffer, o.block);
        if (!reader_count(&meter, got)) {
            co_return reader_report(&meter);
        }
    }
}

}  // namespace

int main(int argc, char** argv) { return run_reader(argc, argv, &tcp_reader); }
