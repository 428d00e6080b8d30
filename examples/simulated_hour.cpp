// SPDX-License-Identifier: Apache-2.0
//
// The same program on a simulated system: a client and a server talk over a network in memory whose
// bytes take 30 to 80 ms, and then an hour passes at once. The seed picks the times and the order
// of what is ready, so that a run with the same seed is the same run.
//
//   cmake --preset dev && cmake --build --preset dev --target example_simulated_hour
//   build/dev/examples/simulated_hour [SEED]

#include <plumb/aio/open_connection.hpp>
#include <plumb/aio/run.hpp>
#include <plumb/aio/server.hpp>
#include <plumb/aio/sleep.hpp>
#include <plumb/sim/world.hpp>

#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace std::chrono_literals;

plumb::task<> echo(plumb::aio::stream peer) {
    while (auto data = co_await peer.read(4096)) {
        co_await peer.write(data);
    }
}

plumb::task<> talk(plumb::sim::world const& world, plumb::aio::server& server) {
    auto peer = co_await plumb::aio::open_connection(server.local());
    co_await peer.write(std::string_view("hello"));
    auto const answer = co_await peer.read_exactly(5);
    std::cout << "at " << world.now() / 1ms << " ms: " << answer.view() << '\n';
    peer.close();

    co_await plumb::aio::sleep(1h);
    std::cout << "at " << world.now() / 1s << " s: an hour has passed\n";
    server.close();
}

plumb::task<> serve(plumb::sim::world const& world) {
    auto server = co_await plumb::aio::start_server(echo, "10.0.0.1", 80);
    plumb::io_env const& env = co_await plumb::this_env();
    plumb::async_run(env.executor, talk(world, server), env.stop);
    co_await server.serve_forever();
}

int main(int argc, char** argv) {
    plumb::sim::world world(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1,
                            {.least_latency = 30ms, .most_latency = 80ms});
    auto const start = std::chrono::steady_clock::now();
    plumb::aio::run(serve(world));
    auto const took = std::chrono::steady_clock::now() - start;
    std::cout << "it took " << took / 1ms << " ms\n";
    return world.now() >= 1h && took < 1min ? 0 : 1;
}
