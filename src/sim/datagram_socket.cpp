// SPDX-License-Identifier: Apache-2.0
#include "sim/datagram_socket.hpp"

#include "sim/scattered.hpp"

#include <algorithm>
#include <utility>

namespace plumb::sim {
namespace {

constexpr outcome again = failed_with(std::errc::resource_unavailable_try_again);
constexpr std::size_t cost_of_each = 256;
constexpr std::size_t most_unix_waiting = 10;  // as on Linux
constexpr std::size_t most_ipv4 = 65'507;
constexpr std::size_t most_ipv6 = 65'527;

bool is_multicast(endpoint const& e) noexcept {
    auto const first = e.address_bytes()[0];
    return e.family() == endpoint::family_type::ipv4 ? first >> 4 == 14 : first == 0xff;
}

bool is_broadcast(endpoint const& e) noexcept {
    auto const first = e.address_bytes()[0];  // of the network, or of loopback
    return e.family() == endpoint::family_type::ipv4 && (first == 255 || first == 127) &&
           std::ranges::all_of(e.address_bytes().last(3), [](auto byte) { return byte == 255; });
}

}  // namespace

datagram_socket::datagram_socket(surroundings& around, network& net, endpoint::family_type f)
    : bound_socket(around, net, handle_kind::datagram_socket, f),
      latency_(is_unix() ? 0 : around.latency()),
      send_limit_(std::max<std::size_t>(around.socket_buffer, 1)),
      receive_limit_(send_limit_) {}

std::uint32_t datagram_socket::state() const noexcept {
    auto const peer = unix_peer_.lock();
    return (received_.empty() ? 0u : can_read) |
           (peer != nullptr && is_full(*peer) ? 0u : can_write) |
           (error_ != std::errc() ? failed : 0u);
}

outcome datagram_socket::take_error() noexcept {
    return failed_with(std::exchange(error_, std::errc()));
}

// Receiving.

outcome datagram_socket::read(std::span<buffer const> into) {
    endpoint from;
    return receive(into, from);
}

outcome datagram_socket::receive(std::span<buffer const> into, endpoint& from) {
    if (error_ != std::errc()) {
        return take_error();
    }
    if (received_.empty()) {
        return again;
    }
    auto const first = std::move(received_.front());
    received_.pop_front();
    waiting_ -= first.bytes.size() + cost_of_each;
    for (auto const& sender : std::exchange(held_up_, {})) {
        if (auto const s = sender.lock()) {
            s->changed();
        }
    }
    auto rest = std::span(first.bytes);
    for (buffer const& b : into) {
        auto const part = rest.first(std::min(b.size(), rest.size()));
        std::ranges::copy(part, b.data());
        rest = rest.subspan(part.size());
    }
    from = network::shown(first.from, family_);
    return rest.empty() ? static_cast<outcome>(first.bytes.size())
                        : failed_with(std::errc::message_size);
}

void datagram_socket::arrive(datagram const& d) {
    if (waiting_ >= receive_limit_) {
        ++around_.datagrams_dropped;
        return;
    }
    waiting_ += d.bytes.size() + cost_of_each;
    received_.push_back(d);
    changed();
}

int datagram_socket::interest(endpoint const& source) const noexcept {
    return !connected_ ? 1 : peer_ == source ? 2 : 0;
}

outcome datagram_socket::set_membership(endpoint const& group, bool member) {
    if (is_unix() || group.family() != family_) {
        return failed_with(std::errc::no_protocol_option);
    }
    if (!is_multicast(group)) {
        return failed_with(std::errc::invalid_argument);
    }
    bool const changes =
        member ? groups_.insert(group.with_port(0)).second : groups_.erase(group.with_port(0)) != 0;
    return changes
               ? 0
               : failed_with(member ? std::errc::address_in_use : std::errc::address_not_available);
}

// Sending.

outcome datagram_socket::write(std::span<const_buffer const> from) {
    if (!connected_) {
        return failed_with(is_unix() ? std::errc::not_connected
                                     : std::errc::destination_address_required);
    }
    return is_unix() ? send_unix(from, unix_peer_.lock().get()) : send_udp(from, peer_);
}

outcome datagram_socket::send(std::span<const_buffer const> from, endpoint const& to) {
    if (!can_name(to)) {
        return cannot_name();
    }
    if (!is_unix()) {
        return send_udp(from, network::destination(network::kept(to)));
    }
    bound_socket* found = nullptr;
    auto const known = network_.find_name(to, kind(), found);
    return known < 0 ? known : send_unix(from, static_cast<datagram_socket*>(found));
}

outcome datagram_socket::send_udp(std::span<const_buffer const> from, endpoint const& to) {
    auto const size = total_of(from);
    bool const v4 = to.family() == endpoint::family_type::ipv4;
    if (size > (v4 ? most_ipv4 : most_ipv6) || size > send_limit_) {
        return failed_with(std::errc::message_size);
    }
    if (to.port() == 0) {
        return failed_with(std::errc::invalid_argument);
    }
    if (is_broadcast(to) && !broadcasts_) {
        return failed_with(std::errc::permission_denied);
    }
    if (error_ != std::errc()) {
        return take_error();
    }
    if (!holds_address_) {
        if (auto const taken = take(local_); taken < 0) {
            return failed_with(std::errc::resource_unavailable_try_again);
        }
    }
    auto source = network::kept(local_);
    if (network::is_any(source)) {
        bool const one = !is_multicast(to) && !is_broadcast(to);
        auto const here = v4 ? endpoint::loopback_v4(0) : endpoint::loopback_v6(0);
        source = (one ? network::source(to) : here).with_port(local_.port());
    }
    around_.time.after(latency_, [self = weak_from_this(), &around = around_, &net = network_, to,
                                  d = datagram{gathered(from), source}, delay = latency_] {
        if (net.is_silent(to)) {
            return;
        }
        if (is_multicast(to) || is_broadcast(to)) {
            net.for_each_at(handle_kind::datagram_socket, to.port(), [&](bound_socket& s) {
                static_cast<datagram_socket&>(s).arrive_at(to, d);
            });
            return;
        }
        auto* const receiver = net.receiver(handle_kind::datagram_socket, d.from, to);
        if (receiver != nullptr) {
            static_cast<datagram_socket&>(*receiver).arrive(d);
            return;
        }
        around.time.after(delay, [self, to] {
            if (auto const sender = self.lock()) {
                sender->refuse(to);
            }
        });
    });
    return static_cast<outcome>(size);
}

/// What is for a group, or for all.
void datagram_socket::arrive_at(endpoint const& destination, datagram const& d) {
    bool const named = network::is_any(local_) || local_ == destination;
    bool const member = is_broadcast(destination) || groups_.contains(destination.with_port(0));
    if (named && member && family_ == destination.family() && interest(d.from) != 0) {
        arrive(d);
    }
}

/// Nobody is there. Linux tells only the connected.
void datagram_socket::refuse(endpoint const& by) {
    if (connected_ && peer_ == by) {
        error_ = std::errc::connection_refused;
        changed();
    }
}

bool datagram_socket::is_full(datagram_socket const& to) const noexcept {
    // A pair that are connected with each other have no limit but their memory.
    return to.unix_peer_.lock().get() == this ? to.waiting_ >= to.receive_limit_
                                              : to.received_.size() > most_unix_waiting;
}

outcome datagram_socket::send_unix(std::span<const_buffer const> from, datagram_socket* to) {
    if (to == nullptr) {
        return failed_with(std::errc::connection_refused);
    }
    auto const size = total_of(from);
    if (size > send_limit_) {
        return failed_with(std::errc::message_size);
    }
    if (to->connected_ && to->unix_peer_.lock().get() != this) {
        return failed_with(std::errc::operation_not_permitted);
    }
    if (is_full(*to)) {
        if (unix_peer_.lock().get() != to) {
            return failed_with(std::errc::no_buffer_space);
        }
        to->held_up_.push_back(weak_from_this());
        return again;
    }
    to->arrive({gathered(from), local_});
    return static_cast<outcome>(size);
}

// Addresses.

outcome datagram_socket::bind(endpoint const& where) { return choose(where); }

outcome datagram_socket::connect(endpoint const& peer) {
    if (!can_name(peer)) {
        return cannot_name();
    }
    if (is_unix()) {
        bound_socket* found = nullptr;
        if (auto const known = network_.find_name(peer, kind(), found); known < 0) {
            return known;
        }
        auto& to = static_cast<datagram_socket&>(*found);
        if (to.connected_ && to.unix_peer_.lock().get() != this) {
            return failed_with(std::errc::operation_not_permitted);
        }
        unix_peer_ = to.weak_from_this();
        peer_ = peer;
    } else {
        peer_ = network::destination(network::kept(peer));
        auto const source = network::source(peer_);
        if (!holds_address_) {
            if (auto const taken = take(source); taken < 0) {
                return taken;
            }
        } else if (network::is_any(local_)) {
            local_ = source.with_port(local_.port());
        }
    }
    connected_ = true;
    changed();
    return 0;
}

outcome datagram_socket::peer_endpoint(endpoint& e) const {
    if (!connected_) {
        return failed_with(std::errc::not_connected);
    }
    e = network::shown(peer_, family_);
    return 0;
}

outcome datagram_socket::set_option(platform::socket_option option, int value) {
    auto const size = static_cast<std::size_t>(std::max(value, 1));
    switch (option) {
    case platform::socket_option::reuse_address:
        reuses_address_ = value != 0;
        return 0;
    case platform::socket_option::reuse_port:
        reuses_port_ = value != 0;
        return 0;
    case platform::socket_option::send_buffer:
        send_limit_ = size;
        return 0;
    case platform::socket_option::receive_buffer:
        receive_limit_ = size;
        return 0;
    case platform::socket_option::broadcast:
        broadcasts_ = value != 0;
        return 0;
    case platform::socket_option::linger:
    case platform::socket_option::multicast_interface:
        return 0;
    case platform::socket_option::no_delay:
        break;
    }
    return failed_with(std::errc::operation_not_supported);
}

void datagram_socket::close() {
    leave();
    for (auto const& sender : std::exchange(held_up_, {})) {
        if (auto const s = sender.lock()) {
            s->changed();
        }
    }
}

}  // namespace plumb::sim
