// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace plumb::sim {

class simulated_system;

/// What a world has seen since it began.
struct world_counters {
    std::uint64_t handles_open = 0;
    /// The most that were open at once.
    std::uint64_t handles_most = 0;
    /// Connections that were established, TCP and unix, without socket pairs.
    std::uint64_t connections = 0;
    /// UDP datagrams that came to a socket whose buffer was full.
    std::uint64_t datagrams_dropped = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;
    /// Events of readiness that multiplexers were told.
    std::uint64_t events = 0;
    /// How often the clock moved.
    std::uint64_t clock_moves = 0;
};

/// While it lives, the process runs on a simulated system: virtual clocks, pipes and a network in
/// memory.
///
/// Handles that are opened and multiplexers that are made meanwhile are simulated, and nothing else
/// of a program changes. Its clocks move only while the program waits and nothing is ready: then
/// they jump to what comes next, so that a sleep of an hour takes no time. (After 1000 turns in a
/// row without a wait, each takes a microsecond, so that a busy program's deadlines come.) A wait
/// that nothing could end fails with `resource_deadlock_would_occur`. What is ready is reported in
/// an order that the seed picks; the same seed and program give the same run on every machine,
/// which `fingerprint` tells.
///
/// The network is one host that has every address: any one can be bound, connected to from
/// everywhere, and refuses where nobody listens. Pipes and sockets otherwise behave as Linux's do.
///
/// One world at a time; handles and multiplexers of the outside are not used meanwhile, and those
/// of the world end before it. Threads: all simulated i/o happens on the thread that made it.
/// Allocates: yes; where memory runs out the process ends.
class world {
public:
    struct options {
        /// Bytes that a pipe holds, counted in pages of 4096 as Linux does.
        std::size_t pipe_buffer = 65'536;
        /// Bytes that each direction of a connection holds, in flight or unread. Of datagrams: how large one may be
        /// that is sent, and how many bytes may wait to be received, 256 for each besides its own.
        std::size_t socket_buffer = 65'536;
        /// Whether the seed makes reads and writes of more than a byte stop short.
        bool short_transfers = false;
        /// How long a connection's bytes are under way: the seed picks a time between these for
        /// each connection, and for each UDP socket that sends.
        std::chrono::nanoseconds least_latency{0};
        std::chrono::nanoseconds most_latency{0};
        /// Where the system clock begins.
        std::chrono::system_clock::time_point system_start =
            std::chrono::sys_days(std::chrono::January / 1 / 2024);
        /// With so many handles open, opening fails with `too_many_files_open`.
        std::size_t most_handles = 1 << 20;
        /// Whether a new handle takes the lowest number that is free, as on Linux. Otherwise no
        /// number comes twice.
        bool reuse_numbers = false;
        /// Whether the world may end before its handles; they can only be closed then.
        bool leaves_handles_open = false;
    };

    /// Puts a simulated system in use, also for `io_multiplexer::this_thread`.
    explicit world(std::uint64_t seed) : world(seed, options()) {}
    world(std::uint64_t seed, options const& o);

    /// Puts the former system back in use.
    ~world();
    world(world const&) = delete;
    world& operator=(world const&) = delete;

    [[nodiscard]] std::uint64_t seed() const noexcept;
    /// How much time has passed since the world began.
    [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
    [[nodiscard]] world_counters const& counters() const noexcept;

    /// A sum over every call of the program, with its time, bytes and outcome: equal for runs that
    /// are equal so far.
    [[nodiscard]] std::uint64_t fingerprint() const noexcept;

    /// Lets time pass, and happen what is due.
    void advance(std::chrono::nanoseconds by);
    /// Sets the system clock forward or back; the steady clock goes on.
    void shift_system_clock(std::chrono::nanoseconds by) noexcept;

    /// Makes an endpoint silent or lets it answer again: connects to it are neither accepted nor
    /// refused, until they give up after 127 s; datagrams are lost. @param where  port 0: all ports of its address
    void set_silent(endpoint const& where, bool silent = true);

private:
    class thread_multiplexer;

    std::unique_ptr<simulated_system> system_;
    std::unique_ptr<thread_multiplexer> multiplexer_;
};

}  // namespace plumb::sim
