// SPDX-License-Identifier: Apache-2.0
//
// An echo server on handles: reads into a buffer of its own by `co_read`, writes by `co_write`, and
// takes results instead of exceptions. This is the level at which plumb costs least.
//
//   cmake --preset dev && cmake --build --preset dev --target example_handle_echo
//   build/dev/examples/handle_echo
//
// In another terminal, with the port that it printed:
//
//   build/dev/examples/echo_client 127.0.0.1 PORT hello

#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

#include <array>
#include <chrono>
#include <iostream>

using namespace plumb;

task<> echo(stream_socket_handle peer) {
    std::array<char, 4096> room;
    for (;;) {
        auto const read = co_await peer.co_read(buffer(room));
        if (read.bytes_transferred() == 0) {
            co_return;  // the end of the stream, or an error
        }
        // A write moves at least one byte; what it left is written next.
        const_buffer rest(room.data(), read.bytes_transferred());
        while (!rest.empty()) {
            auto const written = co_await peer.co_write(rest);
            if (!written) {
                co_return;
            }
            rest += written.bytes_transferred();
        }
    }
}

task<> accept_all(listen_socket_handle listener, io_context& context) {
    for (;;) {
        auto peer = co_await listener.co_accept();
        if (peer) {
            async_run(context.get_executor(), echo(std::move(*peer)));
        } else {
            // Such as a full descriptor table: at once again would spin.
            (void)co_await co_wait(std::chrono::milliseconds(20));
        }
    }
}

int main() {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0));
    if (!listener) {
        std::cerr << "handle_echo: cannot listen: " << listener.error().message() << '\n';
        return 1;
    }
    std::cout << "listening on " << listener->local()->to_string() << std::endl;
    io_context context;
    async_run(context.get_executor(), accept_all(std::move(*listener), context));
    return context.run() ? 0 : 1;
}
