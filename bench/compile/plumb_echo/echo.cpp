// SPDX-License-Identifier: Apache-2.0
//
// An echo server: a coroutine a connection.
#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

#include <array>
#include <cstdio>

namespace {

plumb::task<> echo(plumb::stream_socket_handle peer) {
    std::array<std::byte, 4096> room;
    for (;;) {
        auto const got = co_await peer.co_read(room);
        plumb::const_buffer rest(room.data(), got.bytes_transferred());
        if (rest.empty()) {
            co_return;
        }
        while (!rest.empty()) {
            auto const done = co_await peer.co_write(rest);
            if (!done) {
                co_return;
            }
            rest += done.bytes_transferred();
        }
    }
}

plumb::task<> accept_all(plumb::listen_socket_handle listener, plumb::io_context& context) {
    while (auto peer = co_await listener.co_accept()) {
        plumb::async_run(context.get_executor(), echo(std::move(*peer)));
    }
}

}  // namespace

int main() {
    auto listener = plumb::listen_socket_handle::listen(plumb::endpoint::loopback_v4(0)).value();
    std::printf("listening %u\n", listener.local().value().port());
    plumb::io_context context;
    plumb::async_run(context.get_executor(), accept_all(std::move(listener), context));
    return context.run() ? 0 : 1;
}
