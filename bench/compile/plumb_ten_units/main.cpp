// SPDX-License-Identifier: Apache-2.0
//
// Ten requests on one connection.
#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

#include <cstdio>
#include <cstdlib>

using unit = plumb::task<std::size_t>(plumb::io_handle&);
unit unit0, unit1, unit2, unit3, unit4, unit5, unit6, unit7, unit8, unit9;

namespace {

plumb::task<> run_all(std::uint16_t port) {
    auto socket =
        plumb::stream_socket_handle::stream_socket(plumb::endpoint::family_type::ipv4).value();
    (co_await socket.co_connect(plumb::endpoint::loopback_v4(port))).value();
    for (unit* const each :
         {unit0, unit1, unit2, unit3, unit4, unit5, unit6, unit7, unit8, unit9}) {
        std::printf("%zu\n", co_await each(socket));
    }
}

}  // namespace

int main(int, char** argv) {
    plumb::io_context context;
    plumb::async_run(context.get_executor(),
                     run_all(static_cast<std::uint16_t>(std::atoi(argv[1]))));
    return context.run() ? 0 : 1;
}
