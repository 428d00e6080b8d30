// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What an echo server has done.
struct echo_counters {
    std::uint64_t connections = 0;
    /// How many times something was read and written back.
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
    /// Connections that ended with an error of this machine.
    std::uint64_t failed = 0;
    /// Connections that the peer reset.
    std::uint64_t reset = 0;
    /// Connections that were closed because nothing came or went for too long.
    std::uint64_t idle = 0;
    /// Connections with a write that was still unfinished when the grace was over.
    std::uint64_t cut_off = 0;

    echo_counters& operator+=(echo_counters const& other) noexcept {
        connections += other.connections;
        requests += other.requests;
        bytes += other.bytes;
        failed += other.failed;
        reset += other.reset;
        idle += other.idle;
        cut_off += other.cut_off;
        return *this;
    }
};
