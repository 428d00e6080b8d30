// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/network.hpp"
#include "sim/node.hpp"

#include <cstdint>

namespace plumb::sim {

/// A socket with an address: what `network` knows of one.
class bound_socket : public node {
public:
    bound_socket(surroundings& around, network& net, handle_kind kind, endpoint::family_type f);

    [[nodiscard]] platform::native_kind what() const noexcept override {
        return kind_ == handle_kind::datagram_socket ? platform::native_kind::datagram_socket
               : listening()                         ? platform::native_kind::listen_socket
                                                     : platform::native_kind::stream_socket;
    }
    outcome local_endpoint(endpoint& e) const override;

    [[nodiscard]] handle_kind kind() const noexcept { return kind_; }
    [[nodiscard]] bool reuses_address() const noexcept { return reuses_address_; }
    [[nodiscard]] bool reuses_port() const noexcept { return reuses_port_; }
    /// See `network::kept`.
    [[nodiscard]] endpoint const& kept_local() const noexcept { return local_; }

    /// Whether connections are accepted from it.
    [[nodiscard]] virtual bool listening() const noexcept { return false; }
    /// How much it is meant by what `source` sends to its address: 0 not at all, 1 as any other, 2 it alone.
    [[nodiscard]] virtual int interest(endpoint const& source) const noexcept = 0;

protected:
    [[nodiscard]] static endpoint unspecified(endpoint::family_type f) noexcept;
    [[nodiscard]] bool is_unix() const noexcept {
        return family_ == endpoint::family_type::unix_domain;
    }
    [[nodiscard]] bool can_name(endpoint const& e) const noexcept { return family_ == e.family(); }
    [[nodiscard]] outcome cannot_name() const noexcept;

    /// Takes the address that was asked for, once.
    outcome choose(endpoint const& where);
    /// Takes an address for as long as it is needed.
    outcome take(endpoint const& where);
    void leave() noexcept;
    /// Leaves an address that nobody asked for.
    void leave_unchosen() noexcept;

    surroundings& around_;
    network& network_;
    handle_kind const kind_;
    endpoint::family_type const family_;
    bool holds_address_ = false;
    bool chose_address_ = false;  // by bind: it keeps it until it is closed
    bool reuses_address_ = false;
    bool reuses_port_ = false;
    endpoint local_;
};

}  // namespace plumb::sim
