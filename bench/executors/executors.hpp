// SPDX-License-Identifier: Apache-2.0
//
// What the programs in C++ share: the command line and the clock.
//
//   executors --what NAME [--count 1000000] [--threads 2]
//
// Does a tenth of it to warm up, then the whole, and prints one line of JSON: ns for each item, and for two strands how
// many items of the one ran between two of the other at most. Exit: 0; 1 when the sums are wrong; 2 for wrong usage, such
// as for what a library doesn't have.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

struct figures {
    figures(double ns) : ns_per_item(ns) {}
    figures(double ns, std::uint64_t between) : ns_per_item(ns), most_between(between) {}

    double ns_per_item;
    std::optional<std::uint64_t> most_between;
};

struct workload {
    char const* name;
    figures (*run)(std::uint64_t count, int threads);
};

/// Calls `f(n)`, which does n items.
template <class F>
double time_items(std::uint64_t count, F f) {
    f(count / 10 + 1);
    auto const began = std::chrono::steady_clock::now();
    f(count);
    std::chrono::duration<double, std::nano> const took = std::chrono::steady_clock::now() - began;
    return took.count() / static_cast<double>(count);
}

inline void expect(bool right) {
    if (!right) {
        std::fprintf(stderr, "executors: what came is not what was to come\n");
        std::exit(1);
    }
}

/// Counts down items that any thread ends, and lets one thread wait for all of them.
class countdown {
public:
    explicit countdown(std::uint64_t items) : left_(items) {}
    void end_one() noexcept {
        if (left_.fetch_sub(1) == 1) {
            over_.store(true);
            over_.notify_one();
        }
    }
    void wait() const noexcept { over_.wait(false); }

private:
    std::atomic<std::uint64_t> left_;
    std::atomic<bool> over_{false};
};

/// Two strands on one thread: one is flooded, in the other an item posts itself again until the flood is over.
struct beside_a_flood {
    explicit beside_a_flood(std::uint64_t n) : left(n) {}

    void flood() noexcept {
        --left;
        ++since;
    }
    /// The other item. @return whether to post it again
    bool other() noexcept {
        most = std::max(most, std::exchange(since, 0));
        return left != 0;
    }

    std::uint64_t left;
    std::uint64_t since = 0;
    std::uint64_t most = 0;
};

/// Calls `produce(first, last)` on so many threads, with a part of the items each.
template <class F>
void produce_on(int producers, std::uint64_t items, F produce) {
    std::vector<std::thread> threads;
    auto const number = static_cast<std::uint64_t>(producers);
    for (std::uint64_t i = 0; i != number; ++i) {
        threads.emplace_back(produce, items * i / number, items * (i + 1) / number);
    }
    for (auto& each : threads) {
        each.join();
    }
}

/// The tree of fib(n) that has about so many calls.
inline int fib_of(std::uint64_t calls) {
    std::uint64_t a = 1;
    std::uint64_t b = 1;
    int n = 1;
    while (2 * b - 1 < calls) {
        b += std::exchange(a, b);
        ++n;
    }
    return n;
}
inline std::uint64_t fib_calls(int n) {
    return n < 2 ? 1 : 1 + fib_calls(n - 1) + fib_calls(n - 2);
}
inline std::uint64_t fib_value(int n) {
    return n < 2 ? static_cast<std::uint64_t>(n) : fib_value(n - 1) + fib_value(n - 2);
}

/// The largest tree of tens with not more leaves than that.
inline std::uint64_t skynet_of(std::uint64_t leaves) {
    std::uint64_t size = 1;
    while (size * 10 <= leaves) {
        size *= 10;
    }
    return size;
}

inline int run_executors(int argc, char** argv, std::span<workload const> known) {
    char const* what = "";
    std::uint64_t count = 1'000'000;
    int threads = 2;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--what") == 0) {
            what = argv[i + 1];
        } else if (std::strcmp(argv[i], "--count") == 0) {
            count = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (std::strcmp(argv[i], "--threads") == 0) {
            threads = std::atoi(argv[i + 1]);
        }
    }
    for (auto const& each : known) {
        if (std::strcmp(each.name, what) == 0) {
            figures const found = each.run(count, threads);
            std::printf("{\"ns_per_item\": %.2f", found.ns_per_item);
            if (found.most_between) {
                std::printf(", \"most_between\": %llu",
                            static_cast<unsigned long long>(*found.most_between));
            }
            std::printf("}\n");
            return 0;
        }
    }
    std::fprintf(stderr, "usage: executors --what NAME [--count N] [--threads N]\n");
    return 2;
}
