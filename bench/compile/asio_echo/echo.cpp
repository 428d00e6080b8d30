// SPDX-License-Identifier: Apache-2.0
//
// An echo server: a coroutine a connection.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstdio>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr auto as_value = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> echo(tcp::socket peer) {
    std::array<char, 4096> room;
    for (;;) {
        auto const [ended, size] = co_await peer.async_read_some(asio::buffer(room), as_value);
        if (ended) {
            co_return;
        }
        auto const [failed, written] =
            co_await asio::async_write(peer, asio::buffer(room, size), as_value);
        if (failed) {
            co_return;
        }
    }
}

asio::awaitable<void> accept_all(tcp::acceptor& listener, asio::io_context& context) {
    for (;;) {
        auto [failed, peer] = co_await listener.async_accept(as_value);
        if (failed) {
            co_return;
        }
        asio::co_spawn(context, echo(std::move(peer)), asio::detached);
    }
}

}  // namespace

int main() {
    asio::io_context context(1);
    tcp::acceptor listener(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    std::printf("listening %u\n", listener.local_endpoint().port());
    asio::co_spawn(context, accept_all(listener, context), asio::detached);
    context.run();
    return 0;
}
