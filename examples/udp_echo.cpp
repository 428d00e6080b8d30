// SPDX-License-Identifier: Apache-2.0
//
// Echoes datagrams: `co_receive` tells who sent each one, and `co_send` sends it back there. One
// socket serves all clients.
//
//   cmake --preset dev && cmake --build --preset dev --target example_udp_echo
//   build/dev/examples/udp_echo
//
// In another terminal, with the port that it printed:
//
//   echo hello | socat - UDP:127.0.0.1:PORT

#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_send.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

#include <array>
#include <iostream>
#include <utility>

using namespace plumb;

task<> echo(datagram_socket_handle socket) {
    std::array<char, 65536> room;  // for the largest datagram there is
    for (;;) {
        auto const received = co_await socket.co_receive(buffer(room));
        if (!received) {
            std::cerr << "udp_echo: " << received.error().message() << '\n';
            co_return;
        }
        // UDP promises nothing, so an answer that can't be sent is one that was lost.
        (void)co_await socket.co_send(received->buffers, received->from);
    }
}

int main() {
    auto socket = datagram_socket_handle::datagram_socket(endpoint::family_type::ipv4);
    if (!socket || !socket->bind(endpoint::loopback_v4(0))) {
        std::cerr << "udp_echo: cannot bind a socket\n";
        return 1;
    }
    std::cout << "listening on " << socket->local()->to_string() << std::endl;
    io_context context;
    async_run(context.get_executor(), echo(std::move(*socket)));
    return context.run() ? 0 : 1;
}
