// SPDX-License-Identifier: Apache-2.0
//
// oneTBB. Its tasks don't wait, so that it has no channel and no mutex for them.
#include "../executors.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace {

/// Threads beside the caller, which waits without working.
figures produce(std::uint64_t count, int threads, int producers) {
    tbb::global_control const control(tbb::global_control::max_allowed_parallelism,
                                      static_cast<std::size_t>(threads) + 1);
    tbb::task_arena arena(threads + 1, 1);
    return time_items(count, [&](std::uint64_t n) {
        countdown over(n);
        produce_on(producers, n, [&](std::uint64_t first, std::uint64_t last) {
            for (auto i = first; i != last; ++i) {
                arena.enqueue([&over] { over.end_one(); });
            }
        });
        over.wait();
    });
}

figures one_producer(std::uint64_t count, int threads) { return produce(count, threads, 1); }
figures four_producers(std::uint64_t count, int threads) { return produce(count, threads, 4); }

/// The caller is one of the threads.
template <class F>
double time_in_arena(std::uint64_t count, int threads, F f) {
    tbb::global_control const control(tbb::global_control::max_allowed_parallelism,
                                      static_cast<std::size_t>(threads));
    tbb::task_arena arena(threads);
    return time_items(count, [&](std::uint64_t n) { arena.execute([&] { f(n); }); });
}

figures spawn(std::uint64_t count, int threads) {
    return time_in_arena(count, threads, [](std::uint64_t n) {
        std::atomic<std::uint64_t> sum{0};
        tbb::task_group group;
        for (std::uint64_t i = 0; i != n; ++i) {
            group.run([&sum] { sum.fetch_add(1, std::memory_order_relaxed); });
        }
        group.wait();
        expect(sum.load() == n);
    });
}

std::uint64_t fib_task(int n) {
    if (n < 2) {
        return static_cast<std::uint64_t>(n);
    }
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    tbb::parallel_invoke([&] { a = fib_task(n - 1); }, [&] { b = fib_task(n - 2); });
    return a + b;
}

figures fib(std::uint64_t count, int threads) {
    double const calls = static_cast<double>(fib_calls(fib_of(count)));
    return static_cast<double>(count) / calls * time_in_arena(count, threads, [](std::uint64_t n) {
               expect(fib_task(fib_of(n)) == fib_value(fib_of(n)));
           });
}

std::uint64_t skynet_task(std::uint64_t number, std::uint64_t size) {
    if (size == 1) {
        return number;
    }
    std::uint64_t sums[10];
    tbb::task_group group;
    for (std::uint64_t i = 0; i != 10; ++i) {
        group.run([&sums, i, number, size] {
            sums[i] = skynet_task(number + i * (size / 10), size / 10);
        });
    }
    group.wait();
    std::uint64_t sum = 0;
    for (auto const each : sums) {
        sum += each;
    }
    return sum;
}

figures skynet(std::uint64_t count, int threads) {
    return time_in_arena(count, threads, [](std::uint64_t n) {
        auto const size = skynet_of(n);
        expect(skynet_task(0, size) == size * (size - 1) / 2);
    });
}

constexpr workload workloads[] = {
    {"one_producer", &one_producer},
    {"four_producers", &four_producers},
    {"spawn", &spawn},
    {"fib", &fib},
    {"skynet", &skynet},
};

}  // namespace

int main(int argc, char** argv) { return run_executors(argc, argv, workloads); }
