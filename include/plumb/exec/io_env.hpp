// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/stop_token.hpp>

namespace plumb {

/// What a coroutine hands forward to everything that it awaits: where to resume, and when to stop.
/// Owned by whoever launched the coroutine, borrowed by one pointer by all below it.
struct io_env {
    plumb::executor_ref executor;
    stop_token stop;
};

/// A promise that gives the environment of its coroutine.
template <class Promise>
concept carries_env = requires(Promise const& p) {
    { p.env() } noexcept -> std::same_as<io_env const&>;
};

}  // namespace plumb
