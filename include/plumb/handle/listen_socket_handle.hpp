// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/stream_socket_handle.hpp>

namespace plumb {

class async_accept;

/// A socket that connections are accepted from. Source: D2052R0 4.1.
class listen_socket_handle : public handle {
public:
    struct options {
        /// How many connections may wait to be accepted; the system may lower it.
        int backlog = 4096;
        /// Lets several sockets listen on the same address, among which the system shares connections.
        bool share_port = false;
    };

    /// A closed handle.
    listen_socket_handle() noexcept : handle(handle_kind::listen_socket) {}

    /// Listens for TCP or unix connections on `where`; port 0 and an unnamed unix address let the system choose.
    /// A unix path must not exist: this makes the socket's file, and neither removes an old one before nor its own
    /// when it is closed. Whoever chose the path removes it.
    /// Errors: what socket(2), bind(2) and listen(2) give.
    static result<listen_socket_handle> listen(endpoint const& where, options o) noexcept;
    static result<listen_socket_handle> listen(endpoint const& where) noexcept {
        return listen(where, options());
    }

    /// Takes ownership of a native listener, such as a service manager passes on; its flags are not changed.
    /// Where it blocks, an accept without waiting asks first whether a connection is there. If another process takes
    /// that one in between, the call waits for the next: whoever shares a listener makes it non-blocking.
    /// Errors: wrong_kind, and what fstat(2) gives; the native handle then still is the caller's.
    static result<listen_socket_handle> adopt(native_handle native) noexcept;

    /// @return another handle of the same socket: each connection is accepted by one of them
    [[nodiscard]] result<listen_socket_handle> clone() const noexcept;

    /// Accepts a connection, or fails at the deadline.
    /// Errors: timed_out, what accept(2) gives. Of those, connection_aborted, too_many_files_open,
    /// too_many_files_open_in_system, no_buffer_space and not_enough_memory pass; others are final.
    result<stream_socket_handle> accept(deadline limit = {}) noexcept;

    /// `co_await l.co_accept()` gives what `accept` returns. Defined in <plumb/io/async_accept.hpp>.
    io_awaitable<async_accept> co_accept(deadline limit = {}) noexcept;

    /// @return the address with the port that the system chose
    [[nodiscard]] result<endpoint> local() const noexcept;

private:
    explicit listen_socket_handle(native_handle native,
                                  handle_kind kind = handle_kind::listen_socket) noexcept
        : handle(kind, native) {}
};

}  // namespace plumb
