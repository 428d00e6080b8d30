// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/node.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace plumb::sim {

class bound_socket;

/// Who has which port, of streams and of datagrams, and which name. IPv4 addresses are kept as such
/// also where an IPv6 socket names them (::ffff:a.b.c.d).
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
    /// @param taken  gets the address, if it succeeds
    outcome take_port(bound_socket& s, endpoint const& where, endpoint& taken);
    /// Lets an accepted connection share its listener's port.
    void share_port(bound_socket& s);
    void leave_port(bound_socket& s) noexcept;

    /// Gives the socket a unix address; an abstract one that is free where it is unnamed.
    outcome take_name(bound_socket& s, endpoint const& where, endpoint& taken);
    /// A path stays in the file system, and refuses from then on.
    void leave_name(bound_socket& s) noexcept;
    /// @param found  gets the socket of this kind with that name, if it succeeds
    outcome find_name(endpoint const& where, handle_kind kind, bound_socket*& found) const;

    /// Whether another socket that listens keeps `s` from listening too.
    [[nodiscard]] bool is_listened_to(bound_socket const& s) const;
    /// @return who is meant by what `source` sends to `destination`, or null
    [[nodiscard]] bound_socket* receiver(handle_kind kind, endpoint const& source,
                                         endpoint const& destination);

    /// Calls `f` with each socket that has the port.
    template <class F>
    void for_each_at(handle_kind kind, std::uint16_t port, F f) {
        auto const [first, last] = ports_.equal_range({kind, port});
        for (auto entry = first; entry != last; ++entry) {
            f(*entry->second);
        }
    }

    void set_silent(endpoint const& where, bool silent);
    [[nodiscard]] bool is_silent(endpoint const& destination) const;

private:
    using port_key = std::pair<handle_kind, std::uint16_t>;

    [[nodiscard]] bool is_free(bound_socket const& s, endpoint const& where) const;

    surroundings& around_;
    std::multimap<port_key, bound_socket*> ports_;
    std::map<endpoint, bound_socket*> names_;  // null: a path whose socket is closed
    std::uint32_t unnamed_ = 0;                // counts the names that were given to the unnamed
    std::set<endpoint> silent_;
    std::uint16_t next_free_ = 0;  // counts the ports from the first free one
};

}  // namespace plumb::sim
