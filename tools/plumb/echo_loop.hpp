// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/aio/server.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/io/signal_work.hpp>

#include "echo_counters.hpp"
#include "echo_options.hpp"

#include <cstddef>
#include <system_error>

class echo_server;

/// One thread's share of an echo server: a loop of its own and a listener of its own.
///
/// A stop goes in three steps. No more connections are accepted, and reads that wait are cancelled;
/// writes go on, and what had arrived is answered. When the grace is over, writes are cut off too.
/// Threads: made, run and destroyed on one; `request_stop` from any and from signal handlers.
class echo_loop : private plumb::signal_work {
public:
    /// Listens, at the address in `options`; throws `std::system_error` that says what could not be had.
    echo_loop(echo_server& owner, echo_options const& options, std::size_t max_connections);

    [[nodiscard]] plumb::endpoint local() const { return server_.local(); }
    [[nodiscard]] plumb::multiplexer_kind kind() noexcept { return context_.multiplexer().kind(); }

    /// Serves until it is stopped and the last connection has ended.
    void run();
    void request_stop() noexcept { context_.multiplexer().post(static_cast<signal_work&>(*this)); }

    [[nodiscard]] echo_counters counters() const noexcept;

private:
    struct conversation {
        plumb::aio::stream peer;
        bool answered_after_stop = false;
    };

    plumb::task<> serve();
    plumb::task<> handle(plumb::aio::stream peer);
    plumb::task<> answer(conversation& with, plumb::deadline limit);
    plumb::task<> finish(conversation& with);
    plumb::task<> see_off(plumb::aio::stream& peer);
    plumb::task<> cut_off_after_grace();
    void stop() noexcept;
    void count_failure(std::system_error const& failure) noexcept;

    echo_server& owner_;
    plumb::deadline idle_;
    plumb::deadline grace_;
    plumb::io_context context_;
    plumb::aio::server server_;
    plumb::stop_source writes_;  // cuts them off
    plumb::stop_source rest_;    // what serves only until the last connection has ended
    echo_counters counted_;
    bool stopping_ = false;
};
