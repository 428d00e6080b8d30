// SPDX-License-Identifier: Apache-2.0
#include "echo_loop.hpp"

#include <plumb/aio/open_connection.hpp>
#include <plumb/aio/run.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/with_stop.hpp>

#include "echo_server.hpp"
#include "multiplexer_choice.hpp"
#include "tell.hpp"

#include <utility>

using namespace plumb;

namespace {

constexpr std::size_t most_at_once = 16 * 1024;

aio::server listen(io_context& context, aio::server::handler handle, echo_options const& options,
                   std::size_t max_connections) {
    aio::server::options o;
    o.share_port = options.threads > 1;
    o.max_connections = max_connections;
    auto const where = aio::endpoint_of(options.host, options.port);
    return aio::run(context, aio::start_server(std::move(handle), where, std::move(o)));
}

}  // namespace

echo_loop::echo_loop(echo_server& owner, echo_options const& options, std::size_t max_connections)
    : signal_work([](signal_work& w) noexcept { static_cast<echo_loop&>(w).stop(); }),
      owner_(owner),
      idle_(options.idle_timeout.count() == 0 ? deadline() : deadline(options.idle_timeout)),
      grace_(options.grace),
      context_(make_multiplexer(options.multiplexer)),
      server_(listen(
          context_, [this](aio::stream peer) { return handle(std::move(peer)); }, options,
          max_connections)),
      writes_(context_.get_executor()),
      rest_(context_.get_executor()) {}

void echo_loop::run() { aio::run(context_, serve()); }

echo_counters echo_loop::counters() const noexcept {
    echo_counters sum = counted_;
    sum.connections = server_.count().accepted;
    sum.failed += server_.count().failed;
    return sum;
}

task<> echo_loop::serve() {
    co_await server_.serve_forever();
    rest_.request_stop();
}

void echo_loop::stop() noexcept {
    if (!std::exchange(stopping_, true)) {
        server_.close();
        server_.stop_handlers();
        async_run(context_.get_executor(), cut_off_after_grace(), rest_.token());
    }
}

task<> echo_loop::cut_off_after_grace() {
    auto const over = co_await co_wait(grace_);
    if (over) {
        writes_.request_stop();
    }
}

task<> echo_loop::handle(aio::stream peer) {
    conversation with{std::move(peer)};
    try {
        co_await answer(with, idle_);
        co_return;
    } catch (std::system_error const& failure) {
        if (!stopping_ || failure.code() != std::errc::operation_canceled) {
            count_failure(failure);
            co_return;
        }
    }
    co_await with_stop(writes_.token(), finish(with));
}

/// Until the peer's end. The write stops later than the read: what was read is answered.
task<> echo_loop::answer(conversation& with, deadline limit) {
    while (auto data = co_await with.peer.read(most_at_once, limit)) {
        co_await with_stop(writes_.token(), with.peer.write(data, idle_));
        ++counted_.requests;
        counted_.bytes += data.size();
        with.answered_after_stop = stopping_;
        owner_.count_request();
    }
}

/// Answers until nothing is left that the system has received.
task<> echo_loop::finish(conversation& with) {
    try {
        co_await answer(with, std::chrono::nanoseconds(0));
        co_return;
    } catch (std::system_error const& failure) {
        if (failure.code() != std::errc::timed_out) {
            count_failure(failure);
            co_return;
        }
    }
    if (with.answered_after_stop) {
        co_await see_off(with.peer);
    }
}

/// To close while the peer still sends would reset the connection, and it would lose its answers.
task<> echo_loop::see_off(aio::stream& peer) {
    try {
        peer.write_eof();
        while (auto const dropped = co_await peer.read(most_at_once)) {
        }
    } catch (std::system_error const&) {
        // The grace is over, or the peer is gone.
    }
}

void echo_loop::count_failure(std::system_error const& failure) noexcept {
    std::error_code const why = failure.code();
    if (why == std::errc::connection_reset || why == std::errc::broken_pipe) {
        ++counted_.reset;
    } else if (why == std::errc::timed_out) {
        ++counted_.idle;
    } else if (why == std::errc::operation_canceled) {
        ++counted_.cut_off;
    } else {
        ++counted_.failed;
        tell("plumb echo: a connection failed: {}\n", failure.what());
    }
}
