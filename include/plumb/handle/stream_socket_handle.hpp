// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>
#include <plumb/handle/io_handle.hpp>

namespace plumb {

class async_accept;
class async_connect;

/// A stream socket: a TCP or unix connection. Source: D2052R0 4.1.
class stream_socket_handle : public io_handle {
public:
    struct pair;

    /// A closed handle.
    stream_socket_handle() noexcept : io_handle(handle_kind::stream_socket) {}

    /// Opens a socket that isn't connected yet, for addresses of family `f`.
    /// Errors: what socket(2) gives.
    static result<stream_socket_handle> stream_socket(endpoint::family_type f) noexcept;

    /// Opens two sockets that are connected with each other.
    static result<pair> socket_pair() noexcept;

    /// Takes ownership of a connected native stream socket, whose flags are not changed.
    /// Errors: wrong_kind, and what fstat(2) gives; the native handle then still is the caller's.
    static result<stream_socket_handle> adopt(native_handle native) noexcept;

    /// @return another handle of the same socket: the connection ends when all are closed. What one of them received
    /// ahead of its reads the others don't see.
    [[nodiscard]] result<stream_socket_handle> clone() const noexcept;

    /// Connects, or fails at the deadline. After a failure the handle can only be closed.
    /// Errors: timed_out, what connect(2) gives; no_buffer_space at once where a unix listener's backlog is full.
    result<void> connect(endpoint const& peer, deadline limit = {}) noexcept;

    /// `co_await s.co_connect(peer)` gives what `connect` returns. Defined in <plumb/io/async_connect.hpp>.
    io_awaitable<async_connect> co_connect(endpoint const& peer, deadline limit = {}) noexcept;

    /// Tells the peer that nothing more will be written. May be called twice.
    result<void> shutdown_write() noexcept;

    /// Whether small writes are sent at once (TCP_NODELAY), which unix sockets always do.
    result<void> set_no_delay(bool) noexcept;

    /// Makes `close` reset the connection, so that the peer reads an error and no end.
    result<void> set_reset_on_close() noexcept;

    [[nodiscard]] result<endpoint> local() const noexcept;
    [[nodiscard]] result<endpoint> peer() const noexcept;

private:
    friend class async_accept;
    friend class listen_socket_handle;
    explicit stream_socket_handle(native_handle native) noexcept
        : io_handle(handle_kind::stream_socket, native) {}
};

struct stream_socket_handle::pair {
    stream_socket_handle first;
    stream_socket_handle second;
};

}  // namespace plumb
