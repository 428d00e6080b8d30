// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/bound_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <system_error>
#include <vector>

namespace plumb::sim {

/// A datagram socket: UDP or unix.
///
/// What one sends arrives whole and in order, over UDP one latency later, where it is dropped if the receiver's queue
/// is full. A unix receiver that is full refuses instead.
class datagram_socket final : public bound_socket,
                              public std::enable_shared_from_this<datagram_socket> {
public:
    datagram_socket(surroundings& around, network& net, endpoint::family_type f);

    [[nodiscard]] std::uint32_t state() const noexcept override;
    outcome read(std::span<buffer const> into) override;
    outcome write(std::span<const_buffer const> from) override;
    outcome send(std::span<const_buffer const> from, endpoint const& to) override;
    outcome receive(std::span<buffer const> into, endpoint& from) override;
    void close() override;
    outcome bind(endpoint const& where) override;
    outcome connect(endpoint const& peer) override;
    outcome set_option(platform::socket_option option, int value) override;
    outcome set_membership(endpoint const& group, bool member) override;
    outcome peer_endpoint(endpoint& e) const override;

    [[nodiscard]] int interest(endpoint const& source) const noexcept override;

private:
    struct datagram {
        std::vector<std::byte> bytes;
        endpoint from;
    };

    [[nodiscard]] outcome take_error() noexcept;
    outcome send_udp(std::span<const_buffer const> from, endpoint const& to);
    outcome send_unix(std::span<const_buffer const> from, datagram_socket* to);
    /// Whether `to` takes nothing more from this one, over unix.
    [[nodiscard]] bool is_full(datagram_socket const& to) const noexcept;
    void arrive(datagram const& d);
    void arrive_at(endpoint const& destination, datagram const& d);
    void refuse(endpoint const& by);

    std::int64_t latency_ = 0;
    std::size_t send_limit_;
    std::size_t receive_limit_;
    bool broadcasts_ = false;
    bool connected_ = false;
    endpoint peer_;
    std::weak_ptr<datagram_socket> unix_peer_;
    std::set<endpoint> groups_;
    std::errc error_{};
    std::deque<datagram> received_;
    std::size_t waiting_ = 0;                              // bytes, with the costs of each datagram
    std::vector<std::weak_ptr<datagram_socket>> held_up_;  // until this one is read from
};

}  // namespace plumb::sim
