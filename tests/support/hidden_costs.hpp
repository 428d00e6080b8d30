// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb::test {

/// What this thread has done that a deterministic operation doesn't do. Under a sanitizer only allocations are counted.
struct hidden_costs {
    std::uint64_t allocations;
    std::uint64_t locks;       // of mutexes and reader-writer locks
    std::uint64_t exceptions;  // allocated, to be thrown

    [[nodiscard]] static hidden_costs so_far() noexcept;

    friend hidden_costs operator-(hidden_costs const& a, hidden_costs const& b) noexcept {
        return {a.allocations - b.allocations, a.locks - b.locks, a.exceptions - b.exceptions};
    }
};

}  // namespace plumb::test
