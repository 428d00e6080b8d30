// SPDX-License-Identifier: Apache-2.0
//
// The echo server on plumb's streams: a coroutine a connection, which holds no buffer while it waits. Cancellation is
// enabled (each operation is reached by the server's stop token); no operation has a deadline.
#include "../plumb_server.hpp"

#include <plumb/aio/stream.hpp>

namespace {

plumb::task<> echo(plumb::stream_socket_handle socket, server& owner) {
    plumb::aio::stream stream(std::move(socket));
    try {
        for (;;) {
            auto const data = co_await stream.read(16384);
            if (data.empty()) {
                break;
            }
            co_await stream.write(data);
            owner.count_request();
        }
    } catch (std::system_error const&) {
        // The peer has reset the connection, or the server ends.
    }
}

}  // namespace

int main(int argc, char** argv) { return serve(argc, argv, &echo); }
