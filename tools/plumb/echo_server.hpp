// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>

#include "echo_counters.hpp"
#include "echo_loop.hpp"
#include "echo_options.hpp"

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

/// Echoes what peers send, on one loop a thread; the system shares the connections among them.
///
/// Each thread makes its loop, waits until all have, runs it, waits until all have ended, and then
/// destroys it: until then `request_stop` reaches all of them.
/// Threads: `serve` on one; `request_stop` from any and from signal handlers while `serve` serves.
class echo_server {
public:
    explicit echo_server(echo_options options);

    /// Told when all loops listen, and when they have ended: between the two it may be stopped.
    struct events {
        std::function<void(plumb::endpoint const&, plumb::multiplexer_kind)> listening;
        std::function<void()> ended;
    };

    /// Serves until it is stopped and the last connection has ended.
    /// Throws `std::system_error` that says what could not be had.
    echo_counters serve(events const& told);

    /// Accepts no more, and ends when what is in flight has ended.
    void request_stop() noexcept;

    /// By the loops: one more message was echoed.
    void count_request() noexcept {
        if (options_.max_requests != 0 && left_.fetch_sub(1, std::memory_order_relaxed) == 1) {
            request_stop();
        }
    }

private:
    struct share {
        std::unique_ptr<echo_loop> loop;
        std::exception_ptr failure;
        echo_counters counted;
    };

    void refuse_port_in_use() const;
    void make_loop(std::size_t index) noexcept;
    void run_loop(std::size_t index) noexcept;
    void end_loop(std::size_t index) noexcept;
    void work_beside(std::size_t index) noexcept;
    [[nodiscard]] bool failed() const noexcept;

    echo_options options_;
    std::atomic<std::uint64_t> left_;
    std::vector<share> shares_;
    std::barrier<> all_;
};
