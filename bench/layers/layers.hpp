// SPDX-License-Identifier: Apache-2.0
//
// What the programs of the suite share: the command line, the count of what is done, and the report. All of them drive an
// i/o object whose operation does nothing but complete through the queue of a plumb::io_context.
//
//   layers [--shape 1|2|10|100] [--operations 20000000]
//
// The shape says how operations are composed: one alone, one in two levels, ten in three, a hundred in four. One composed
// operation after another is begun. Prints one line of JSON: ns for each operation of the i/o object; the first tenth warms
// up. Exit: 0; 2 for wrong usage.
#pragma once

#include <plumb/io/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// How many of the next lower level the two upper levels do, in sequence.
inline constexpr int reads_of_a_level = 10;

class layers_meter {
public:
    layers_meter(int shape, std::uint64_t operations) noexcept
        : each_(shape >= 10 ? shape : 1), timed_(operations / each_ + 1), left_(timed_ / 10 + 1) {}

    /// A composed operation is over. @return whether to begin another
    bool again() noexcept { return --left_ != 0 || go_on(); }

    void report() const {
        std::chrono::duration<double, std::nano> const took = ended_ - began_;
        std::printf("{\"ns_per_operation\": %.3f}\n",
                    took.count() / (static_cast<double>(timed_) * static_cast<double>(each_)));
    }

private:
    using time = std::chrono::steady_clock::time_point;

    [[gnu::noinline]] bool go_on() noexcept {
        auto const now = std::chrono::steady_clock::now();
        if (began_ == time()) {
            began_ = now;
            left_ = timed_;
            return true;
        }
        ended_ = now;
        return false;
    }

    std::uint64_t each_;
    std::uint64_t timed_;
    std::uint64_t left_;
    time began_{};
    time ended_{};
};

/// Runs `drive<Shape>(context, meter)`, which begins the first operation, and all that follows from it.
template <class Driver>
int run_layers(int argc, char** argv, Driver drive) {
    int shape = 1;
    std::uint64_t operations = 20'000'000;
    bool known = argc % 2 == 1;
    for (int i = 1; known && i < argc; i += 2) {
        if (std::strcmp(argv[i], "--shape") == 0) {
            shape = std::atoi(argv[i + 1]);
        } else if (std::strcmp(argv[i], "--operations") == 0) {
            operations = std::strtoull(argv[i + 1], nullptr, 10);
        } else {
            known = false;
        }
    }
    known = known && (shape == 1 || shape == 2 || shape == 10 || shape == 100);
    if (!known) {
        std::fprintf(stderr, "usage: layers [--shape 1|2|10|100] [--operations N]\n");
        return 2;
    }
    plumb::io_context context;
    layers_meter meter(shape, operations);
    switch (shape) {
    case 1:
        drive.template operator()<1>(context, meter);
        break;
    case 2:
        drive.template operator()<2>(context, meter);
        break;
    case 10:
        drive.template operator()<10>(context, meter);
        break;
    case 100:
        drive.template operator()<100>(context, meter);
        break;
    }
    meter.report();
    return 0;
}
