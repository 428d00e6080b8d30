// SPDX-License-Identifier: Apache-2.0
//
// Timers: a task that sleeps, and beside it one that ticks until the first has ended. Nothing
// blocks the thread: both run on it.
//
//   cmake --preset dev && cmake --build --preset dev --target example_timer
//   build/dev/examples/timer

#include <plumb/aio/run.hpp>
#include <plumb/aio/sleep.hpp>

#include <chrono>
#include <iostream>

using namespace std::chrono_literals;

// Stopped where it sleeps, by an exception, as soon as the main task has ended.
plumb::task<> tick(int& ticks) {
    for (;;) {
        co_await plumb::aio::sleep(20ms);
        std::cout << "tick " << ++ticks << '\n';
    }
}

int main() {
    int ticks = 0;
    auto const start = std::chrono::steady_clock::now();
    plumb::aio::run([&]() -> plumb::task<> {
        plumb::io_env const& env = co_await plumb::this_env();
        plumb::async_run(env.executor, tick(ticks), env.stop, [](auto& /*how it ended*/) {});
        co_await plumb::aio::sleep(110ms);
    });
    auto const took = std::chrono::steady_clock::now() - start;
    std::cout << "slept for " << took / 1ms << " ms\n";
    return took >= 110ms && ticks >= 1 ? 0 : 1;
}
