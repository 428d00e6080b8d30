// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/node.hpp"

#include <cstdint>
#include <map>
#include <set>

namespace plumb::sim {

class stream_socket;

/// Who has which port. IPv4 addresses are kept as such also where an IPv6 socket names them
/// (::ffff:a.b.c.d).
class network {
public:
    explicit network(surroundings& around) noexcept : around_(around) {}

    /// The address as it is kept.
    [[nodiscard]] static endpoint kept(endpoint const& e) noexcept;
    /// The address as a socket of this family names it.
    [[nodiscard]] static endpoint shown(endpoint const& kept, endpoint::family_type f) noexcept;
    /// The address that a connection to this one leads to: for the unspecified one loopback.
    [[nodiscard]] static endpoint destination(endpoint const& kept) noexcept;
    /// The address that a connection to this one comes from.
    [[nodiscard]] static endpoint source(endpoint const& destination) noexcept;
    [[nodiscard]] static bool is_any(endpoint const& kept) noexcept;

    /// Gives the socket a port: the one that is asked for, or a free one for 0.
    /// @return the port, or minus the error
    outcome take_port(stream_socket& s, endpoint const& where);
    /// Lets an accepted connection share its listener's port.
    void share_port(stream_socket& s, std::uint16_t port) { ports_.emplace(port, &s); }
    void leave_port(stream_socket& s) noexcept;

    /// Whether another socket that listens keeps `s` from listening too.
    [[nodiscard]] bool is_listened_to(stream_socket const& s) const;
    /// @return who listens there, or null
    [[nodiscard]] stream_socket* listener(endpoint const& destination);

    void set_silent(endpoint const& where, bool silent);
    [[nodiscard]] bool is_silent(endpoint const& destination) const;

private:
    [[nodiscard]] bool is_free(stream_socket const& s, endpoint const& where) const;

    surroundings& around_;
    std::multimap<std::uint16_t, stream_socket*> ports_;
    std::set<endpoint> silent_;
    std::uint16_t next_free_ = 0;  // counts the ports from the first free one
};

}  // namespace plumb::sim
