// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb {

/// What a barrier waits for. Source: P1031.
enum class barrier_kind : std::uint8_t {
    /// Nothing: the system begins to store the bytes. Promises no order and no safety.
    nowait_data_only,
    /// The bytes, and what is needed to find them again, are stored: they survive a loss of power.
    wait_data_only,
    /// So are all attributes of the file, such as its times.
    wait_all,
};

}  // namespace plumb
