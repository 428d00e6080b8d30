// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/deadline.hpp>

#include "platform/seam.hpp"

#include <algorithm>
#include <cstdint>

namespace plumb {

/// How long a blocking call waits, in ns, before it looks whether the system clock has jumped.
constexpr std::int64_t clock_check_interval = 1'000'000'000;

/// Calls `attempt` until it gives something else than EAGAIN, and `wait(ns left)` in between, up to `limit`.
/// @return what the last attempt gave, an error of `wait`, or minus ETIMEDOUT
template <class Attempt, class Wait>
platform::outcome repeat_until(deadline limit, Attempt attempt, Wait wait) noexcept {
    auto const& os = platform::os();
    auto const again = platform::failed_with(std::errc::resource_unavailable_try_again);
    auto done = attempt();
    if (done != again) {
        return done;
    }
    if (limit.is_zero()) {
        return platform::failed_with(std::errc::timed_out);
    }
    auto const now = [&] { return limit.is_system() ? os.system_now() : os.steady_now(); };
    std::int64_t const end = limit.is_infinite() ? 0 : limit.due_after(now());
    for (;;) {
        auto left = platform::forever;
        if (!limit.is_infinite()) {
            left = end - now();
            if (left <= 0) {
                return platform::failed_with(std::errc::timed_out);
            }
            if (limit.is_system()) {
                left = std::min(left, clock_check_interval);
            }
        }
        if (auto const waited = wait(left); waited < 0) {
            return waited;
        }
        done = attempt();
        if (done != again) {
            return done;
        }
    }
}

/// The same, for what nothing tells of: waits in pauses.
template <class Attempt>
platform::outcome repeat_with_pauses(deadline limit, Attempt attempt) noexcept {
    constexpr std::int64_t longest = 10'000'000;
    std::int64_t pause = 50'000;
    return repeat_until(limit, attempt, [&](std::int64_t left) {
        auto const slept = platform::os().sleep(left < 0 ? pause : std::min(left, pause));
        pause = std::min(pause * 2, longest);
        return slept;
    });
}

/// The same; waits for the handle to be ready for `what`.
template <class Attempt>
platform::outcome block(native_handle native, platform::readiness what, deadline limit,
                        Attempt attempt) noexcept {
    return repeat_until(limit, attempt, [&](std::int64_t left) {
        return platform::os().await_ready(native, what, left);
    });
}

/// Accepts without waiting. A listener that blocks is asked first: it waits all the same if somebody else takes the
/// connection in between.
inline platform::outcome accept_now(native_handle native, handle_kind kind) noexcept {
    auto const& os = platform::os();
    return kind == handle_kind::shared_listen_socket &&
                   os.await_ready(native, platform::readable, 0) == 0
               ? platform::failed_with(std::errc::resource_unavailable_try_again)
               : os.accept(native);
}

}  // namespace plumb
