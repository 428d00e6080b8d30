// SPDX-License-Identifier: Apache-2.0
//
// Ten requests on one connection.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>
#include <cstdlib>

namespace asio = boost::asio;
using asio::ip::tcp;
using unit = asio::awaitable<std::size_t>(tcp::socket&);
unit unit0, unit1, unit2, unit3, unit4, unit5, unit6, unit7, unit8, unit9;

namespace {

asio::awaitable<void> run_all(asio::io_context& context, unsigned short port) {
    tcp::socket socket(context);
    co_await socket.async_connect({asio::ip::address_v4::loopback(), port}, asio::use_awaitable);
    for (unit* const each :
         {unit0, unit1, unit2, unit3, unit4, unit5, unit6, unit7, unit8, unit9}) {
        std::printf("%zu\n", co_await each(socket));
    }
}

}  // namespace

int main(int, char** argv) {
    asio::io_context context(1);
    asio::co_spawn(context, run_all(context, static_cast<unsigned short>(std::atoi(argv[1]))),
                   asio::detached);
    context.run();
    return 0;
}
