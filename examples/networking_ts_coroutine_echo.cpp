// SPDX-License-Identifier: Apache-2.0
//
// The echo server of networking_ts_echo_server.cpp as coroutines: the token `use_awaitable` makes
// each operation one that a `plumb::task` awaits. An error is an exception, the end of the stream too.
//
//   cmake --preset dev && cmake --build --preset dev --target example_networking_ts_coroutine_echo
//   build/dev/examples/networking_ts_coroutine_echo
//
// In another terminal, with the port that it printed:
//
//   build/dev/examples/networking_ts_echo_client 127.0.0.1 PORT hello

#include "networking_ts/async_write.hpp"
#include "networking_ts/io_context.hpp"
#include "networking_ts/ip/tcp.hpp"
#include "networking_ts/use_awaitable.hpp"

#include <array>
#include <cstddef>
#include <exception>
#include <iostream>
#include <utility>

namespace net = networking_ts;
using net::ip::tcp;

net::awaitable<> echo(tcp::socket peer) {
    std::array<char, 4096> data;
    for (;;) {
        std::size_t const n = co_await peer.async_read_some(net::buffer(data), net::use_awaitable);
        co_await net::async_write(peer, net::buffer(data, n), net::use_awaitable);
    }
}

net::awaitable<> listen(net::io_context& context, tcp::acceptor acceptor) {
    for (;;) {
        tcp::socket peer = co_await acceptor.async_accept(net::use_awaitable);
        net::co_spawn(context, echo(std::move(peer)), net::detached);
    }
}

int main() {
    try {
        net::io_context context;
        tcp::acceptor acceptor(context, tcp::endpoint(net::ip::make_address("127.0.0.1"), 0));
        auto const where = acceptor.local_endpoint();
        std::cout << "listening on " << where.address().to_string() << ':' << where.port()
                  << std::endl;
        net::co_spawn(context, listen(context, std::move(acceptor)), net::detached);
        context.run();
    } catch (std::exception const& e) {
        std::cerr << "networking_ts_coroutine_echo: " << e.what() << '\n';
        return 1;
    }
}
