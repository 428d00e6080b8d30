// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/aio/stream.hpp>
#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/task/task.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>

namespace plumb::aio {

/// Listens, and runs a handler for each connection, in the manner of asyncio's Server.
///
/// A handler that throws ends its own connection; the exception is reported and the server goes on. A full
/// descriptor table and connections that are gone before they are accepted don't end it either.
/// Threads: its loop's. Source: asyncio for C++20.
class server {
public:
    /// Owns its connection; called on the server's loop, with a stop token of the server's.
    using handler = std::function<task<>(stream)>;

    struct options {
        /// How many connections may wait to be accepted; the system may lower it.
        int backlog = 4096;
        /// Lets several servers listen on the same address, among which the system shares connections.
        bool share_port = false;
        /// How many connections are served at once; more wait in the backlog. 0: no limit.
        std::size_t max_connections = 0;
        /// Told of an exception that left a handler; the default prints a line to stderr.
        std::function<void(std::exception_ptr, endpoint const& peer)> on_error;
    };

    struct counters {
        std::uint64_t accepted = 0;
        std::uint64_t failed = 0;  // handlers that threw
        std::size_t open = 0;
    };

    server(server&&) noexcept;
    server& operator=(server&&) noexcept;
    /// Closes it and stops the handlers; a `serve_forever` that runs ends by itself.
    ~server();

    /// Accepts and serves until `close` or a stop request, then waits until the last handler has ended. A stop request
    /// also stops the handlers. Throws where the listening socket fails for good.
    [[nodiscard]] task<> serve_forever();

    /// Accepts no more. Handlers go on.
    void close() noexcept;
    /// Requests all handlers to stop: what they await throws `operation_canceled`.
    void stop_handlers() noexcept;

    [[nodiscard]] endpoint local() const;
    [[nodiscard]] counters const& count() const noexcept;

private:
    struct state;
    friend task<server> start_server(handler, endpoint, options);
    explicit server(std::shared_ptr<state> s) noexcept;

    std::shared_ptr<state> state_;
};

/// Begins to listen; `serve_forever` then accepts. Port 0 lets the system choose.
/// Throws `std::system_error` that names the endpoint: address_in_use, what bind(2) and listen(2) give.
[[nodiscard]] task<server> start_server(server::handler handle, std::string_view host,
                                        std::uint16_t port, server::options o = {});
[[nodiscard]] task<server> start_server(server::handler handle, endpoint where,
                                        server::options o = {});

}  // namespace plumb::aio
