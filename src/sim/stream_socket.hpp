// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/byte_queue.hpp"
#include "sim/network.hpp"
#include "sim/node.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

namespace plumb::sim {

/// A stream socket: TCP, or one of a pair of local ones.
///
///   fresh -> listening
///   fresh -> connecting -> connected -> over
///   fresh -> connecting -> over      refused or timed out; a further connect leads back to fresh
///   connected -> over                of a pair, or accepted
///
/// `over` is reached when both directions have ended or the peer has reset the connection.
/// Everything that a socket sends reaches its peer one latency later and in order; the peer is gone
/// when its handle is closed, and bytes that arrive then are answered by a reset.
class stream_socket final : public node, public std::enable_shared_from_this<stream_socket> {
public:
    enum class domain : std::uint8_t { tcp, local };

    stream_socket(surroundings& around, network& net, domain d, endpoint::family_type f);

    static std::pair<std::shared_ptr<node>, std::shared_ptr<node>> make_pair(surroundings& around,
                                                                             network& net);

    [[nodiscard]] std::uint32_t state() const noexcept override;
    [[nodiscard]] bool is_socket() const noexcept override { return true; }
    outcome read(std::span<buffer const> into) override;
    outcome write(std::span<const_buffer const> from) override;
    void close() override;
    outcome bind(endpoint const& where) override;
    outcome listen(int backlog) override;
    outcome connect(endpoint const& peer) override;
    outcome connect_outcome() override;
    outcome shutdown_write() override;
    outcome set_option(platform::socket_option option, int value) override;
    outcome local_endpoint(endpoint& e) const override;
    outcome peer_endpoint(endpoint& e) const override;
    [[nodiscard]] outcome accepts() const override;
    std::shared_ptr<node> accept() override;

    [[nodiscard]] bool listening() const noexcept { return phase_ == phase::listening; }
    [[nodiscard]] bool reuses_address() const noexcept { return reuses_address_; }
    [[nodiscard]] bool reuses_port() const noexcept { return reuses_port_; }
    /// See `network::kept`.
    [[nodiscard]] endpoint const& kept_local() const noexcept { return local_; }

private:
    enum class phase : std::uint8_t { fresh, listening, connecting, connected, over };

    /// Whether poll(2) would call it writable: not before a fair part of its buffer is free.
    [[nodiscard]] bool has_room() const noexcept;
    [[nodiscard]] std::size_t room() const noexcept;
    [[nodiscard]] std::size_t capacity() const noexcept;
    [[nodiscard]] bool tcp() const noexcept { return domain_ == domain::tcp; }
    [[nodiscard]] bool can_name(endpoint const& e) const noexcept { return family_ == e.family(); }
    [[nodiscard]] outcome cannot_name() const noexcept;
    [[nodiscard]] outcome take_error(std::errc otherwise) noexcept;
    outcome take_port(endpoint const& where);
    void leave_port() noexcept;

    using arrival = std::function<void(stream_socket&)>;
    /// Does something to the peer when what is sent now arrives there; if the peer is gone by then,
    /// does something else to this one when it learns of that.
    void send(arrival to_peer, arrival when_undelivered = {});

    void knock(std::uint64_t attempt, int tries);
    void established();
    void fail_connect(std::errc why);
    void arrive(std::span<std::byte const> bytes);
    void acknowledge(std::size_t bytes);
    void end_received();
    void end_acknowledged();
    void reset();
    void local_peer_closed(bool unread);
    void go_over() noexcept;
    void disconnect() noexcept;
    void close_connection(bool abort);

    surroundings& around_;
    network& network_;
    domain const domain_;
    endpoint::family_type const family_;
    phase phase_ = phase::fresh;
    bool holds_port_ = false;
    bool chose_port_ = false;  // by bind: it keeps the port until it is closed
    bool announced_ = false;   // its success was returned by connect
    bool reuses_address_ = false;
    bool reuses_port_ = false;
    bool resets_on_close_ = false;
    bool sent_end_ = false;
    bool got_end_ = false;
    std::errc error_{};
    endpoint local_;
    endpoint remote_;
    std::size_t send_limit_;
    std::size_t receive_limit_;
    std::int64_t latency_ = 0;
    std::uint64_t attempt_ = 0;  // counts connects, so that what is left of an older one is known

    std::weak_ptr<stream_socket> peer_;
    byte_queue received_;
    std::size_t outstanding_ = 0;  // bytes sent that the peer has not read

    std::deque<std::shared_ptr<stream_socket>> backlog_;
    std::size_t most_backlog_ = 0;
};

}  // namespace plumb::sim
