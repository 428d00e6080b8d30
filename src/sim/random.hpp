// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace plumb::sim {

/// Numbers that follow from the seed alone, with every compiler (SplitMix64). Threads: one at a
/// time.
class random {
public:
    explicit random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        state_ += 0x9e37'79b9'7f4a'7c15;
        auto x = state_;
        x = (x ^ x >> 30) * 0xbf58'476d'1ce4'e5b9;
        x = (x ^ x >> 27) * 0x94d0'49bb'1331'11eb;
        return x ^ x >> 31;
    }

    /// @param n  not 0
    /// @return one of 0 ... n - 1, each as likely as the others
    std::uint64_t below(std::uint64_t n) noexcept {
        constexpr auto most = std::numeric_limits<std::uint64_t>::max();
        auto const whole = most - most % n;
        auto x = next();
        while (x >= whole) {
            x = next();
        }
        return x % n;
    }

private:
    std::uint64_t state_;
};

}  // namespace plumb::sim
