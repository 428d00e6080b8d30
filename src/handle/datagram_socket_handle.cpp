// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/datagram_socket_handle.hpp>

#include "handle/adopted.hpp"
#include "handle/blocking.hpp"
#include "handle/outcome.hpp"

namespace plumb {

result<datagram_socket_handle>
datagram_socket_handle::datagram_socket(endpoint::family_type f) noexcept {
    auto const opened = platform::os().open_socket(handle_kind::datagram_socket, f);
    if (opened < 0) {
        return platform::error_of(opened);
    }
    return datagram_socket_handle(opened);
}

result<datagram_socket_handle> datagram_socket_handle::adopt(native_handle native) noexcept {
    auto const own = adopted(native, platform::native_kind::datagram_socket);
    if (!own) {
        return own.error();
    }
    return datagram_socket_handle(*own);
}

result<datagram_socket_handle> datagram_socket_handle::clone() const noexcept {
    auto const cloned = platform::os().duplicate(native());
    if (cloned < 0) {
        return platform::error_of(cloned);
    }
    return datagram_socket_handle(cloned);
}

result<void> datagram_socket_handle::bind(endpoint const& where) noexcept {
    return to_result(platform::os().bind(native(), where));
}

result<void> datagram_socket_handle::connect(endpoint const& peer) noexcept {
    return to_result(platform::os().connect(native(), peer));
}

io_result<const_buffers> datagram_socket_handle::send(io_request<const_buffers> request,
                                                      endpoint const& to, deadline limit) noexcept {
    auto const sent = block(native(), platform::writable, limit,
                            [&] { return platform::os().send(native(), request.buffers, to); });
    if (sent < 0) {
        return platform::error_of(sent);
    }
    return request.buffers;
}

result<datagram_socket_handle::datagram>
datagram_socket_handle::receive(io_request<buffers> request, deadline limit) noexcept {
    endpoint from;
    auto const received = block(native(), platform::readable, limit, [&] {
        return platform::os().receive(native(), request.buffers, from);
    });
    if (received < 0) {
        return platform::error_of(received);
    }
    return datagram{request.buffers.first(static_cast<std::size_t>(received)), from};
}

result<void> datagram_socket_handle::set_broadcast(bool on) noexcept {
    return to_result(
        platform::os().set_option(native(), platform::socket_option::broadcast, on ? 1 : 0));
}

result<void> datagram_socket_handle::set_reuse_address(bool on) noexcept {
    return to_result(
        platform::os().set_option(native(), platform::socket_option::reuse_address, on ? 1 : 0));
}

result<void> datagram_socket_handle::set_receive_buffer(int bytes) noexcept {
    return to_result(
        platform::os().set_option(native(), platform::socket_option::receive_buffer, bytes));
}

result<void> datagram_socket_handle::join_multicast(endpoint const& group,
                                                    std::uint32_t network_interface) noexcept {
    return to_result(platform::os().set_membership(native(), group, network_interface, true));
}

result<void> datagram_socket_handle::leave_multicast(endpoint const& group,
                                                     std::uint32_t network_interface) noexcept {
    return to_result(platform::os().set_membership(native(), group, network_interface, false));
}

result<void>
datagram_socket_handle::set_multicast_interface(std::uint32_t network_interface) noexcept {
    return to_result(platform::os().set_option(native(),
                                               platform::socket_option::multicast_interface,
                                               static_cast<int>(network_interface)));
}

result<endpoint> datagram_socket_handle::local() const noexcept {
    endpoint e;
    if (auto const known = platform::os().local_endpoint(native(), e); known < 0) {
        return platform::error_of(known);
    }
    return e;
}

result<endpoint> datagram_socket_handle::peer() const noexcept {
    endpoint e;
    if (auto const known = platform::os().peer_endpoint(native(), e); known < 0) {
        return platform::error_of(known);
    }
    return e;
}

}  // namespace plumb
