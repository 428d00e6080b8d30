// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/deadline.hpp>

#include "platform/seam.hpp"

namespace plumb {

/// Calls `attempt` until it gives something else than EAGAIN, waiting in between for `what`, up to `limit`.
/// @return what the last attempt gave, or minus ETIMEDOUT
template <class Attempt>
platform::outcome block(native_handle native, platform::readiness what, deadline limit,
                        Attempt attempt) noexcept {
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
        }
        if (auto const ready = os.await_ready(native, what, left); ready < 0) {
            return ready;
        }
        done = attempt();
        if (done != again) {
            return done;
        }
    }
}

}  // namespace plumb
