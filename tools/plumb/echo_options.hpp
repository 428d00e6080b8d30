// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_multiplexer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

/// What `plumb echo` was told on the command line.
struct echo_options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 7777;
    /// Nothing: the best that works here.
    std::optional<plumb::multiplexer_kind> multiplexer;
    std::size_t threads = 1;
    /// At once, on all threads together. 0: no limit.
    std::size_t max_connections = 0;
    /// After how many echoed messages it ends. 0: never.
    std::uint64_t max_requests = 0;
    /// How long a peer may neither send nor take anything. 0: forever.
    std::chrono::nanoseconds idle_timeout{0};
    /// How long what is in flight may take to end after a stop.
    std::chrono::nanoseconds grace = std::chrono::seconds(5);
};
