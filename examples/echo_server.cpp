// SPDX-License-Identifier: Apache-2.0
//
// An echo server: a coroutine for each connection, one thread for all. It prints where it listens.
//
//   cmake --preset dev && cmake --build --preset dev --target example_echo_server
//   build/dev/examples/echo_server
//
// In another terminal, with the port that it printed:
//
//   build/dev/examples/echo_client 127.0.0.1 PORT hello

#include <iostream>
#include <plumb/aio/run.hpp>
#include <plumb/aio/server.hpp>

plumb::task<> echo(plumb::aio::stream peer) {
    while (auto data = co_await peer.read(4096)) {
        co_await peer.write(data);
    }
}
plumb::task<> serve() {
    auto server = co_await plumb::aio::start_server(echo, "127.0.0.1", 0);
    std::cout << "listening on " << server.local().to_string() << std::endl;
    co_await server.serve_forever();
}
int main() { plumb::aio::run(serve()); }
