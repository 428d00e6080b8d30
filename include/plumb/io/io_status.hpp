// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb {

/// What `start` and `poll` tell of an operation.
enum class io_status : std::uint8_t {
    /// It goes on; the multiplexer will complete it.
    pending,
    /// It is over: its result is stored.
    completed,
    /// It is on its way to the thread that drives, and not this one's any more. Only of what a coroutine awaits.
    sent,
};

}  // namespace plumb
