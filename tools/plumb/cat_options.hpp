// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_multiplexer.hpp>

#include "cat_address.hpp"

#include <chrono>
#include <optional>

/// What `plumb cat` was told on the command line.
struct cat_options {
    enum class progress_type { automatic, always, never };

    cat_address first;
    cat_address second;
    bool one_way = false;
    /// How long to wait for another end, and how long nothing may move. 0: forever.
    std::chrono::nanoseconds timeout{0};
    /// Nothing: the best that works here.
    std::optional<plumb::multiplexer_kind> multiplexer;
    progress_type progress = progress_type::automatic;
};
