// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/bound_socket.hpp"
#include "sim/byte_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

namespace plumb::sim {

/// A stream socket: TCP or unix.
///
///   fresh -> listening
///   fresh -> connecting -> connected -> over
///   fresh -> connecting -> over      refused or timed out; a further connect leads back to fresh
///   fresh -> connected -> over       unix
///   connected -> over                of a pair, or accepted
///
/// `over` is reached when both directions have ended or the peer has reset the connection.
/// Everything that a socket sends reaches its peer one latency later and in order; the peer is gone
/// when its handle is closed, and bytes that arrive then are answered by a reset.
class stream_socket final : public bound_socket,
                            public std::enable_shared_from_this<stream_socket> {
public:
    stream_socket(surroundings& around, network& net, endpoint::family_type f);

    static std::pair<std::shared_ptr<node>, std::shared_ptr<node>> make_pair(surroundings& around,
                                                                             network& net);

    [[nodiscard]] std::uint32_t state() const noexcept override;
    outcome read(std::span<buffer const> into) override;
    outcome write(std::span<const_buffer const> from) override;
    void close() override;
    outcome bind(endpoint const& where) override;
    outcome listen(int backlog) override;
    outcome connect(endpoint const& peer) override;
    outcome connect_outcome() override;
    outcome shutdown_write() override;
    outcome set_option(platform::socket_option option, int value) override;
    outcome peer_endpoint(endpoint& e) const override;
    [[nodiscard]] outcome accepts() const override;
    std::shared_ptr<node> accept() override;

    [[nodiscard]] bool listening() const noexcept override { return phase_ == phase::listening; }
    [[nodiscard]] int interest(endpoint const&) const noexcept override {
        return listening() ? 1 : 0;
    }

private:
    enum class phase : std::uint8_t { fresh, listening, connecting, connected, over };

    /// Whether poll(2) would call it writable: not before a fair part of its buffer is free.
    [[nodiscard]] bool has_room() const noexcept;
    [[nodiscard]] std::size_t room() const noexcept;
    [[nodiscard]] std::size_t capacity() const noexcept;
    [[nodiscard]] bool tcp() const noexcept { return !is_unix(); }
    [[nodiscard]] outcome take_error(std::errc otherwise) noexcept;

    using arrival = std::function<void(stream_socket&)>;
    /// Does something to the peer when what is sent now arrives there; if the peer is gone by then,
    /// does something else to this one when it learns of that.
    void tell(arrival to_peer, arrival when_undelivered = {});

    outcome connect_unix(endpoint const& peer);
    /// @return the other end of a connection that this one asked for, to be accepted
    std::shared_ptr<stream_socket> meet(stream_socket& listener);
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

    phase phase_ = phase::fresh;
    bool announced_ = false;  // its success was returned by connect
    bool resets_on_close_ = false;
    bool sent_end_ = false;
    bool got_end_ = false;
    std::errc error_{};
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
