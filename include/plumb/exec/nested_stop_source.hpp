// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/exec/stop_token.hpp>

namespace plumb {

/// The environment of what a coroutine starts and waits for: its own executor, and a stop that it can request itself
/// and that is requested when its own is. Ends after all that watches it.
/// Threads: only inside the executor. Allocates: never.
class nested_stop_source {
public:
    /// @param above  the coroutine's; must outlive it
    explicit nested_stop_source(io_env const& above) noexcept
        : own_(above.executor, stop_source::requested_inside{}),
          env_{above.executor, own_.token()},
          forward_(above.stop, request{this}) {}

    [[nodiscard]] io_env const& env() const noexcept { return env_; }
    [[nodiscard]] stop_token token() noexcept { return own_.token(); }
    [[nodiscard]] bool stop_requested() const noexcept { return own_.stop_requested(); }
    /// @return false when a stop was already requested
    bool request_stop() noexcept { return own_.request_stop(); }

private:
    struct request {
        nested_stop_source* of;
        void operator()() const noexcept { of->request_stop(); }
    };

    stop_source own_;
    io_env env_;
    stop_callback<request> forward_;
};

}  // namespace plumb
