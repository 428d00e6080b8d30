// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/open_connection.hpp>

#include <plumb/io/async_connect.hpp>

#include <string>

namespace plumb::aio {

endpoint endpoint_of(std::string_view host, std::uint16_t port) {
    if (host == "localhost") {
        return endpoint::loopback_v4(port);
    }
    auto const parsed = endpoint::parse_address(host, port);
    if (!parsed) {
        throw_error(parsed.error(), std::string(host).c_str());
    }
    return *parsed;
}

task<stream> open_connection(std::string_view host, std::uint16_t port, deadline limit) {
    return open_connection(endpoint_of(host, port), limit);
}

task<stream> open_connection(endpoint peer, deadline limit) {
    auto const check = [&](result<void> const& done) {
        if (!done) {
            throw_error(done.error(), ("cannot connect to " + peer.to_string()).c_str());
        }
    };
    auto socket = stream_socket_handle::stream_socket(peer.family());
    check(socket ? result<void>() : socket.error());
    check(co_await socket->co_connect(peer, limit));
    check(socket->set_no_delay(true));
    co_return stream(std::move(*socket));
}

}  // namespace plumb::aio
