// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>
#include <plumb/handle/io_handle.hpp>

#include <cstdint>

namespace plumb {

class async_receive;
class async_send;

/// A socket of datagrams, UDP or unix: each is sent and received whole.
///
/// `send` and `receive` name the peer. A connected one may also `read` and `write`, and hears only its peer. There is
/// no end of the stream: 0 bytes are an empty datagram. `read` and `write` of an empty request do nothing (so empty
/// datagrams go by `send`), and use the whole buffers of a list whose last one is trimmed; `send` and `receive` take
/// any list as it is.
///
/// Nothing is cut off in silence. A datagram that is larger than the buffers fails with message_size; its first bytes
/// are in them, the rest is gone, and the next operation takes the next datagram. One that is too large to be sent
/// fails with message_size, and nothing is sent.
/// What the network reports of earlier datagrams, such as connection_refused where nobody listens, fails one later
/// operation of a connected socket, which goes on working. UDP drops what it has no room for, told to nobody.
/// Threads: one reader and one writer at a time. Source: D2052R0 4.1.
class datagram_socket_handle : public io_handle {
public:
    struct datagram;

    /// A closed handle.
    datagram_socket_handle() noexcept : io_handle(handle_kind::datagram_socket) {}

    /// Opens a socket for addresses of family `f`, without an address of its own yet.
    /// Errors: what socket(2) gives.
    static result<datagram_socket_handle> datagram_socket(endpoint::family_type f) noexcept;

    /// Takes ownership of a native datagram socket, whose flags are not changed.
    /// Errors: wrong_kind, and what fstat(2) gives; the native handle then still is the caller's.
    static result<datagram_socket_handle> adopt(native_handle native) noexcept;

    /// @return another handle of the same socket: each datagram is received by one of them
    [[nodiscard]] result<datagram_socket_handle> clone() const noexcept;

    /// Receives on `where`; port 0 and an unnamed unix address let the system choose, as the first send does for UDP.
    /// A unix path must not exist: this makes the socket's file, and closing doesn't remove it.
    /// Errors: what bind(2) gives.
    result<void> bind(endpoint const& where) noexcept;

    /// Chooses the one peer, without asking it; may be called again for another.
    /// Errors: what connect(2) gives.
    result<void> connect(endpoint const& peer) noexcept;

    /// Sends one datagram, which may be empty.
    /// @param limit  how long to wait for room to send; zero never waits
    /// @return the buffers sent, which are all
    /// Errors: timed_out, message_size, what send(2) gives; no_buffer_space at once where the queue of a unix
    /// receiver is full that this isn't connected to. Allocates: never.
    io_result<const_buffers> send(io_request<const_buffers> request, endpoint const& to,
                                  deadline limit = {}) noexcept;

    /// Receives one datagram; also into an empty request, which has room for an empty one.
    /// Errors: timed_out, message_size, what recv(2) gives. Allocates: never.
    result<datagram> receive(io_request<buffers> request, deadline limit = {}) noexcept;

    /// `co_await s.co_send(request, to)` gives what `send` returns. Defined in <plumb/io/async_send.hpp>.
    /// Cancel-safe: yes, a datagram is sent whole or not at all.
    io_awaitable<async_send> co_send(io_request<const_buffers> request, endpoint const& to,
                                     deadline limit = {}) noexcept;
    /// `co_await s.co_receive(request)` gives what `receive` returns. Defined in <plumb/io/async_receive.hpp>.
    /// Cancel-safe: yes, no datagram is lost.
    io_awaitable<async_receive> co_receive(io_request<buffers> request,
                                           deadline limit = {}) noexcept;

    /// Whether it may send to all hosts of a network, by their IPv4 broadcast address; not at first.
    result<void> set_broadcast(bool) noexcept;
    /// Before `bind`: lets several sockets have the address if all do this, as multicast groups want it.
    result<void> set_reuse_address(bool) noexcept;
    /// How many bytes may wait to be received. The system counts its own costs too, and has a limit.
    result<void> set_receive_buffer(int bytes) noexcept;

    /// Receives what is sent to a multicast group, of the socket's family, at the port that it is bound to.
    /// @param network_interface  its number; 0: the group's scope, or where that is 0 the system's choice
    /// Errors: what setsockopt(2) gives for IP_ADD_MEMBERSHIP.
    result<void> join_multicast(endpoint const& group,
                                std::uint32_t network_interface = 0) noexcept;
    result<void> leave_multicast(endpoint const& group,
                                 std::uint32_t network_interface = 0) noexcept;
    /// By which interface it sends to multicast groups; 0: by the system's choice.
    result<void> set_multicast_interface(std::uint32_t network_interface) noexcept;

    [[nodiscard]] result<endpoint> local() const noexcept;
    /// Errors: not_connected.
    [[nodiscard]] result<endpoint> peer() const noexcept;

private:
    explicit datagram_socket_handle(native_handle native) noexcept
        : io_handle(handle_kind::datagram_socket, native) {}
};

/// What was received, and who sent it: unnamed where a unix sender has no address.
struct datagram_socket_handle::datagram {
    plumb::buffers buffers;
    endpoint from;
};

}  // namespace plumb
