// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <utility>

namespace plumb {

/// Until when to wait: not at all (zero), for a duration, until a time, or without end.
///
/// Durations and times of the steady clock count on that clock. A time of the system clock follows the
/// jumps of the system clock: at once where a multiplexer waits, within a second where a call blocks.
/// Nanoseconds, rounded up; what doesn't fit saturates: a negative duration is zero, and what is more
/// than 292 years off has no end.
/// Reads no clock. Threads: as a value. Allocates: never. Source: D2052R0 4.1.
class deadline {
public:
    enum class kind_type : std::uint8_t { relative, steady, system, infinite };

    /// Without end.
    constexpr deadline() noexcept = default;

    template <class Rep, class Period>
    constexpr deadline(std::chrono::duration<Rep, Period> const& wait) noexcept
        : deadline(kind_type::relative, nanoseconds_of(wait)) {
        ns_ = ns_ < 0 ? 0 : ns_;
    }
    template <class Duration>
    constexpr deadline(
        std::chrono::time_point<std::chrono::steady_clock, Duration> const& until) noexcept
        : deadline(kind_type::steady, nanoseconds_of(until.time_since_epoch())) {}
    template <class Duration>
    constexpr deadline(
        std::chrono::time_point<std::chrono::system_clock, Duration> const& until) noexcept
        : deadline(kind_type::system, nanoseconds_of(until.time_since_epoch())) {}

    /// The one whose `kind()` and `nanoseconds()` are these.
    [[nodiscard]] static constexpr deadline of(kind_type kind, std::int64_t ns) noexcept {
        return {kind, ns};
    }

    [[nodiscard]] constexpr kind_type kind() const noexcept { return kind_; }
    [[nodiscard]] constexpr bool is_infinite() const noexcept {
        return kind_ == kind_type::infinite;
    }
    /// Whether nothing is waited for.
    [[nodiscard]] constexpr bool is_zero() const noexcept { return is_relative() && ns_ == 0; }
    [[nodiscard]] constexpr bool is_relative() const noexcept {
        return kind_ == kind_type::relative;
    }
    /// Whether it counts on the system clock; else on the steady one.
    [[nodiscard]] constexpr bool is_system() const noexcept { return kind_ == kind_type::system; }

    /// How long to wait, or the time on its clock; the greatest number where there is no end.
    [[nodiscard]] constexpr std::int64_t nanoseconds() const noexcept { return ns_; }

    /// When it is over, as ns of its clock; the greatest number where there is no end.
    /// @param now  ns of its clock
    [[nodiscard]] constexpr std::int64_t due_after(std::int64_t now) const noexcept {
        if (!is_relative()) {
            return ns_;
        }
        return now > 0 && ns_ > most - now ? most : now + ns_;
    }

    friend constexpr bool operator==(deadline const&, deadline const&) noexcept = default;
    /// Deadlines of different kinds can't be ordered, but that no end is after all others.
    friend constexpr std::partial_ordering operator<=>(deadline const& a,
                                                       deadline const& b) noexcept {
        if (a.kind_ != b.kind_ && !a.is_infinite() && !b.is_infinite()) {
            return std::partial_ordering::unordered;
        }
        return a.ns_ <=> b.ns_;
    }

private:
    static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

    constexpr deadline(kind_type kind, std::int64_t ns) noexcept
        : ns_(ns), kind_(ns == most ? kind_type::infinite : kind) {}

    template <class Rep, class Period>
    static constexpr std::int64_t
    nanoseconds_of(std::chrono::duration<Rep, Period> const& d) noexcept {
        using factor = std::ratio_divide<Period, std::nano>;
        if constexpr (std::integral<Rep>) {
            static_assert(factor::num <= most / factor::den,
                          "such a period can't be counted in ns");
            if (std::cmp_greater(d.count(), most)) {
                return most;
            }
            auto const count = static_cast<std::int64_t>(d.count());
            auto const whole = count / factor::den;
            auto const rest = count % factor::den * factor::num;
            auto const rest_ns = rest / factor::den + (rest % factor::den > 0 ? 1 : 0);
            if (whole > (most - factor::num) / factor::num) {
                return most;
            }
            if (whole < (least + factor::num) / factor::num) {
                return least;
            }
            return whole * factor::num + rest_ns;
        } else {
            auto const ns = std::chrono::duration<long double, std::nano>(d).count();
            if (ns != ns || ns <= static_cast<long double>(least)) {
                return least;  // not a number: better no wait than one without end
            }
            if (ns >= static_cast<long double>(most)) {
                return most;
            }
            auto const floor = static_cast<std::int64_t>(ns);
            return floor + (static_cast<long double>(floor) < ns ? 1 : 0);
        }
    }

    std::int64_t ns_ = most;
    kind_type kind_ = kind_type::infinite;
};

static_assert(sizeof(deadline) == 16 && std::is_trivially_copyable_v<deadline>);

}  // namespace plumb
