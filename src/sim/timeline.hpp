// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>

namespace plumb::sim {

/// The time of a world and what will happen in it. What is due at the same time happens in the
/// order in which it was planned. Threads: one at a time.
class timeline {
public:
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

    /// ns since the start.
    [[nodiscard]] std::int64_t now() const noexcept { return now_; }
    [[nodiscard]] std::uint64_t moves() const noexcept { return moves_; }
    /// When the next thing happens, or never.
    [[nodiscard]] std::int64_t next() const noexcept {
        return planned_.empty() ? never : planned_.begin()->first;
    }

    /// Plans `what`. @param delay  ns; 0: it happens at once
    void after(std::int64_t delay, std::function<void()> what);

    /// Moves to `time`, not back; what is due until then happens on the way.
    void advance_to(std::int64_t time);

private:
    void move_to(std::int64_t time) noexcept;

    std::int64_t now_ = 0;
    std::uint64_t moves_ = 0;
    std::multimap<std::int64_t, std::function<void()>> planned_;
};

}  // namespace plumb::sim
