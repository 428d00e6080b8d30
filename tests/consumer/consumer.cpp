// SPDX-License-Identifier: Apache-2.0
// The smallest program of somebody else's: a task that sleeps on the best multiplexer.
#include <plumb/aio/run.hpp>
#include <plumb/aio/sleep.hpp>

#include <chrono>

int main() {
    return plumb::aio::run([]() -> plumb::task<int> {
        co_await plumb::aio::sleep(std::chrono::milliseconds(1));
        co_return 0;
    });
}
