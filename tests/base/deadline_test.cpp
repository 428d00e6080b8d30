// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/deadline.hpp>

#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>

#include <gtest/gtest.h>

namespace {

using namespace plumb;
using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using kind = deadline::kind_type;

constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();

static_assert(sizeof(deadline) == 16 && std::is_trivially_copyable_v<deadline>);
static_assert(!std::constructible_from<deadline, int>);

TEST(deadline, of_nothing_has_no_end) {
    constexpr deadline never;
    EXPECT_TRUE(never.is_infinite());
    EXPECT_FALSE(never.is_relative());
    EXPECT_FALSE(never.is_zero());
    EXPECT_EQ(never.due_after(5), most);
    EXPECT_EQ(never.nanoseconds(), most);
}

TEST(deadline, of_a_duration_counts_from_when_it_is_used) {
    constexpr deadline d = 3s;
    EXPECT_EQ(d.kind(), kind::relative);
    EXPECT_EQ(d.nanoseconds(), 3'000'000'000);
    EXPECT_EQ(d.due_after(500), 3'000'000'500);
    EXPECT_FALSE(d.is_system());
}

TEST(deadline, of_no_time_or_less_never_waits) {
    EXPECT_TRUE(deadline(0s).is_zero());
    EXPECT_TRUE(deadline(-5h).is_zero());
    EXPECT_TRUE(deadline(duration<double>(-0.1)).is_zero());
    EXPECT_TRUE(deadline(duration<std::int64_t, std::pico>(0)).is_zero());
    EXPECT_FALSE(deadline(1ns).is_zero());
    EXPECT_FALSE(deadline(steady_clock::time_point()).is_zero());
}

TEST(deadline, keeps_the_clock_of_a_time) {
    deadline const steady = steady_clock::time_point(5s);
    EXPECT_EQ(steady.kind(), kind::steady);
    EXPECT_EQ(steady.due_after(99), 5'000'000'000);
    deadline const system = std::chrono::sys_days(std::chrono::January / 2 / 1970);
    EXPECT_TRUE(system.is_system());
    EXPECT_EQ(system.due_after(99), 24LL * 3600 * 1'000'000'000);
    EXPECT_EQ(deadline(system_clock::time_point(-1s)).due_after(0), -1'000'000'000);
}

TEST(deadline, rounds_up_to_ns) {
    EXPECT_EQ(deadline(duration<std::int64_t, std::pico>(1)).nanoseconds(), 1);
    EXPECT_EQ(deadline(duration<std::int64_t, std::pico>(2001)).nanoseconds(), 3);
    EXPECT_EQ(deadline(duration<std::int64_t, std::ratio<1, 3>>(1)).nanoseconds(), 333'333'334);
    EXPECT_EQ(deadline(duration<double>(1e-12)).nanoseconds(), 1);
    EXPECT_EQ(deadline(duration<float, std::nano>(1.5f)).nanoseconds(), 2);
    EXPECT_EQ(deadline(steady_clock::time_point(-1ns)).nanoseconds(), -1);
    using ago = std::chrono::time_point<steady_clock, duration<std::int64_t, std::pico>>;
    EXPECT_EQ(deadline(ago(duration<std::int64_t, std::pico>(-1999))).nanoseconds(), -1);
}

TEST(deadline, never_overflows) {
    EXPECT_TRUE(deadline(std::chrono::hours::max()).is_infinite());
    EXPECT_TRUE(deadline(std::chrono::nanoseconds::max()).is_infinite());
    EXPECT_TRUE(deadline(duration<std::uint64_t>(~std::uint64_t{0})).is_infinite());
    EXPECT_TRUE(deadline(duration<std::int64_t, std::ratio<1, 60>>(most)).is_infinite());
    EXPECT_TRUE(deadline(duration<double>(1e300)).is_infinite());
    EXPECT_TRUE(deadline(duration<double>(std::numeric_limits<double>::infinity())).is_infinite());
    EXPECT_TRUE(deadline(duration<double>(std::numeric_limits<double>::quiet_NaN())).is_zero());
    EXPECT_TRUE(deadline(std::chrono::hours::min()).is_zero());
    EXPECT_TRUE(deadline(steady_clock::time_point::max()).is_infinite());
    EXPECT_TRUE(deadline(system_clock::time_point::max()).is_infinite());
    EXPECT_EQ(deadline(system_clock::time_point::min()).due_after(0), least);
    EXPECT_EQ(deadline(std::chrono::sys_seconds::min()).due_after(0), least);

    constexpr deadline long_wait = std::chrono::nanoseconds(most - 1);
    EXPECT_EQ(long_wait.due_after(1), most);
    EXPECT_EQ(long_wait.due_after(most), most);
    EXPECT_EQ(long_wait.due_after(least), -2);
    // 9 223 372 036 s still fit.
    EXPECT_EQ(deadline(9'223'372'034s).nanoseconds(), 9'223'372'034'000'000'000);
    EXPECT_TRUE(deadline(9'223'372'037s).is_infinite());
}

TEST(deadline, compares_with_its_own_kind_and_with_no_end) {
    EXPECT_EQ(deadline(1s), deadline(1000ms));
    EXPECT_LT(deadline(1s), deadline(2s));
    EXPECT_LT(deadline(1s), deadline());
    EXPECT_GT(deadline(), deadline(system_clock::time_point(1s)));
    EXPECT_EQ(deadline(), deadline());
    EXPECT_NE(deadline(1s), deadline(steady_clock::time_point(1s)));
    EXPECT_EQ(deadline(1s) <=> deadline(system_clock::time_point(1s)),
              std::partial_ordering::unordered);
}

}  // namespace
