// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/stop_token.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/io/signal_work.hpp>
#include <plumb/task/task.hpp>

#include "cat_options.hpp"
#include "cat_side.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

/// Connects two sides: what is read from one is written to the other, in each direction that both have.
///
/// Where the input of a direction ends, so does its output, and the other direction goes on. A stop ends the reads; what
/// was read is still written, as long as that takes no more than a moment.
/// Threads: made, run and destroyed on one; `request_stop` from any and from signal handlers.
class cat : private plumb::signal_work {
public:
    explicit cat(cat_options const& options);

    /// Throws `std::runtime_error` that says what could not be done.
    /// @return whether all was copied; not if a stop came before the end of every direction
    bool run();
    void request_stop() noexcept {
        stopping_.store(true);
        context_.multiplexer().post(static_cast<signal_work&>(*this));
    }

private:
    using clock = std::chrono::steady_clock;

    plumb::task<> main();
    plumb::task<> connect();
    plumb::task<> open(plumb::deadline limit);
    plumb::task<> copy_all();
    plumb::task<> copy(cat_side& from, cat_side& to);
    plumb::task<> copy_to_end(cat_side& from, cat_side& to);
    plumb::task<> copy_file();
    plumb::task<> write(cat_side& to, plumb::const_buffer bytes);
    plumb::task<> end_when_idle();
    plumb::task<> show_progress();
    plumb::task<> cut_off();
    void moved(std::uint64_t bytes) noexcept;
    void show(char const* end) const;
    void stop() noexcept;

    cat_options const& options_;
    bool const two_ways_;
    cat_side first_;
    cat_side second_;
    plumb::io_context context_;
    plumb::stop_source reads_;
    plumb::stop_source writes_;
    plumb::stop_source rest_;  // what only accompanies the copying
    std::atomic<bool> stopping_{false};
    bool open_ = false;
    bool idle_ = false;         // for too long
    bool interrupted_ = false;  // by a stop, before an end
    bool shown_ = false;        // the progress
    /// Directions that are still to end by themselves, which those from datagrams never do.
    int to_end_ = 0;
    std::uint64_t bytes_ = 0;
    clock::time_point const start_ = clock::now();
    clock::time_point last_moved_ = start_;
};
