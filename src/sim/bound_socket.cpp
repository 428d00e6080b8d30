// SPDX-License-Identifier: Apache-2.0
#include "sim/bound_socket.hpp"

#include <utility>

namespace plumb::sim {

endpoint bound_socket::unspecified(endpoint::family_type f) noexcept {
    switch (f) {
    case endpoint::family_type::ipv4:
        return endpoint::any_v4(0);
    case endpoint::family_type::ipv6:
        return endpoint::any_v6(0);
    case endpoint::family_type::unix_domain:
        break;
    }
    return endpoint::unix_unnamed();
}

bound_socket::bound_socket(surroundings& around, network& net, handle_kind kind,
                           endpoint::family_type f)
    : around_(around), network_(net), kind_(kind), family_(f), local_(unspecified(f)) {}

outcome bound_socket::local_endpoint(endpoint& e) const {
    e = network::shown(local_, family_);
    return 0;
}

outcome bound_socket::cannot_name() const noexcept {
    return failed_with(family_ == endpoint::family_type::ipv4
                           ? std::errc::address_family_not_supported
                           : std::errc::invalid_argument);
}

outcome bound_socket::choose(endpoint const& where) {
    if (!can_name(where)) {
        return cannot_name();
    }
    if (holds_address_) {
        return failed_with(std::errc::invalid_argument);
    }
    auto const taken = take(network::kept(where));
    chose_address_ = taken >= 0;
    return taken;
}

outcome bound_socket::take(endpoint const& where) {
    auto const taken = is_unix() ? network_.take_name(*this, where, local_)
                                 : network_.take_port(*this, where, local_);
    holds_address_ = taken >= 0;
    return taken;
}

void bound_socket::leave() noexcept {
    if (std::exchange(holds_address_, false)) {
        is_unix() ? network_.leave_name(*this) : network_.leave_port(*this);
    }
}

void bound_socket::leave_unchosen() noexcept {
    if (!chose_address_) {
        leave();
    }
}

}  // namespace plumb::sim
