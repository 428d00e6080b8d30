// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace plumb_bench {

/// Counts durations in log-linear buckets: exact up to 256 ns, within 0.8 % above, without limit.
/// Threads: one. Allocates: never.
class histogram {
public:
    void add(std::uint64_t nanoseconds) noexcept {
        ++counts_[bucket(nanoseconds)];
        ++total_;
        most_ = std::max(most_, nanoseconds);
    }

    std::uint64_t total() const noexcept { return total_; }
    std::uint64_t most() const noexcept { return most_; }

    /// The duration that `share` (0 to 1) of all do not exceed; 0 when nothing was added.
    std::uint64_t quantile(double share) const noexcept {
        auto const wanted = static_cast<std::uint64_t>(share * static_cast<double>(total_) + 0.5);
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (counts_[i] != 0 && seen >= wanted) {
                return std::min(largest_in(i), most_);
            }
        }
        return most_;
    }

private:
    static constexpr unsigned linear_bits = 7;  // 128 buckets for each power of two
    static constexpr std::uint64_t linear = 1U << linear_bits;

    static constexpr std::size_t bucket(std::uint64_t value) noexcept {
        auto const width = static_cast<unsigned>(std::bit_width(value));
        unsigned const shift = width <= linear_bits + 1 ? 0 : width - linear_bits - 1;
        return static_cast<std::size_t>(shift * linear + (value >> shift));
    }

    static constexpr std::uint64_t largest_in(std::size_t bucket) noexcept {
        if (bucket < 2 * linear) {
            return bucket;
        }
        auto const shift = static_cast<unsigned>(bucket / linear - 1);
        return ((bucket % linear + linear + 1) << shift) - 1;
    }

    std::array<std::uint64_t, (64 - linear_bits + 1) * linear> counts_{};
    std::uint64_t total_ = 0;
    std::uint64_t most_ = 0;
};

}  // namespace plumb_bench
