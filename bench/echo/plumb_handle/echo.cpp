// SPDX-License-Identifier: Apache-2.0
//
// The echo server on plumb's handles: a coroutine a connection, reading into a buffer in its frame. Cancellation is
// enabled (each operation is reached by the server's stop token); no operation has a deadline.
#include "../plumb_server.hpp"

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>

#include <array>

namespace {

plumb::task<> echo(plumb::stream_socket_handle socket, server& owner) {
    std::array<std::byte, 16384> bytes;
    for (;;) {
        auto const got = co_await socket.co_read(bytes);
        std::size_t const size = got.bytes_transferred();
        if (size == 0) {
            co_return;  // the end, or an error
        }
        for (std::size_t sent = 0; sent != size;) {
            auto const done = co_await socket.co_write({bytes.data() + sent, size - sent});
            if (!done) {
                co_return;
            }
            sent += done.bytes_transferred();
        }
        owner.count_request();
    }
}

}  // namespace

int main(int argc, char** argv) { return serve(argc, argv, &echo); }
