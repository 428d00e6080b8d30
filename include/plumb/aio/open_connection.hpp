// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/aio/stream.hpp>

#include <cstdint>
#include <string_view>

namespace plumb::aio {

/// A numeric address, or `localhost` for 127.0.0.1, as an endpoint.
/// Throws `error::not_an_address` with the name for other names: they are not looked up.
[[nodiscard]] endpoint endpoint_of(std::string_view host, std::uint16_t port);

/// Connects to `host`, an address as `endpoint_of` takes it, or fails at the deadline.
/// Throws `std::system_error` that names the endpoint: timed_out, operation_canceled, what connect(2) gives.
/// Cancel-safe: yes, the socket is closed.
[[nodiscard]] task<stream> open_connection(std::string_view host, std::uint16_t port,
                                           deadline limit = {});
[[nodiscard]] task<stream> open_connection(endpoint peer, deadline limit = {});

}  // namespace plumb::aio
