// SPDX-License-Identifier: Apache-2.0
#include "sim/stream_socket.hpp"

#include "sim/scattered.hpp"

#include <algorithm>
#include <vector>

namespace plumb::sim {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr int knocks = 6;  // again, when there is no answer: after 1, 2, 4, ... seconds
constexpr int most_backlog = 4096;

constexpr outcome again = failed_with(std::errc::resource_unavailable_try_again);

}  // namespace

stream_socket::stream_socket(surroundings& around, network& net, endpoint::family_type f)
    : bound_socket(around, net, handle_kind::stream_socket, f),
      remote_(local_),
      send_limit_(std::max<std::size_t>(around.socket_buffer, 1)),
      receive_limit_(send_limit_) {}

std::pair<std::shared_ptr<node>, std::shared_ptr<node>>
stream_socket::make_pair(surroundings& around, network& net) {
    auto const make = [&] {
        return std::make_shared<stream_socket>(around, net, endpoint::family_type::unix_domain);
    };
    auto const a = make();
    auto const b = make();
    a->phase_ = b->phase_ = phase::connected;
    a->peer_ = b;
    b->peer_ = a;
    return {a, b};
}

// What is seen from outside.

std::uint32_t stream_socket::state() const noexcept {
    std::uint32_t const error = error_ != std::errc() ? failed : 0u;
    switch (phase_) {
    case phase::fresh:
        return error | hung_up | can_write;
    case phase::listening:
        return error | (backlog_.empty() ? 0u : can_read);
    case phase::connecting:
        return error;
    case phase::connected:
    case phase::over:
        break;
    }
    bool const reads_end = got_end_ || phase_ == phase::over;
    bool const writes_end = sent_end_ || phase_ == phase::over;
    std::uint32_t bits = error;
    bits |= reads_end && writes_end ? hung_up : 0u;
    bits |= reads_end ? can_read | read_ended : 0u;
    bits |= received_.empty() ? 0u : can_read;
    bits |= has_room() || (tcp() && writes_end) ? can_write : 0u;
    return bits;
}

std::size_t stream_socket::capacity() const noexcept {
    auto const peer = peer_.lock();
    return peer != nullptr ? std::min(send_limit_, peer->receive_limit_) : send_limit_;
}

std::size_t stream_socket::room() const noexcept {
    auto const most = capacity();
    return most > outstanding_ ? most - outstanding_ : 0;
}

bool stream_socket::has_room() const noexcept {
    return tcp() ? room() != 0 && room() >= outstanding_ / 2 : outstanding_ <= capacity() / 4;
}

outcome stream_socket::take_error(std::errc otherwise) noexcept {
    auto const e = std::exchange(error_, std::errc());
    return failed_with(e != std::errc() ? e : otherwise);
}

outcome stream_socket::read(std::span<buffer const> into) {
    auto const wanted = total_of(into);
    if (wanted == 0) {
        return 0;
    }
    if (received_.empty()) {
        switch (phase_) {
        case phase::fresh:
        case phase::listening:
            return failed_with(std::errc::not_connected);
        case phase::connecting:
            return again;
        case phase::connected:
        case phase::over:
            break;
        }
        // An end that came in order hides what broke the connection later.
        if (tcp() && got_end_) {
            return 0;
        }
        if (error_ != std::errc()) {
            return take_error({});
        }
        return got_end_ || phase_ == phase::over ? 0 : again;
    }
    auto const possible = std::min(wanted, received_.size());
    auto const moved = around_.shortened(possible);
    scatter(received_, into, moved);
    if (moved < possible) {
        changed();  // as if the rest came only now
    }
    tell([moved](stream_socket& peer) { peer.acknowledge(moved); });
    return static_cast<outcome>(moved);
}

outcome stream_socket::write(std::span<const_buffer const> from) {
    auto const wanted = total_of(from);
    if (wanted == 0) {
        return 0;
    }
    if (phase_ == phase::connecting) {
        return again;
    }
    if (phase_ != phase::connected || sent_end_) {
        return tcp() ? take_error(std::errc::broken_pipe) : failed_with(std::errc::broken_pipe);
    }
    auto const possible = std::min(wanted, room());
    if (possible == 0) {
        return again;
    }
    auto const moved = around_.shortened(possible);
    outstanding_ += moved;
    std::vector<std::byte> bytes;
    bytes.reserve(moved);
    for (const_buffer const& b : from) {
        auto const part = b.first(moved - bytes.size());
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    if (moved < possible) {
        changed();
    }
    tell([bytes = std::move(bytes)](stream_socket& peer) { peer.arrive(bytes); },
         [](stream_socket& self) { self.reset(); });
    return static_cast<outcome>(moved);
}

outcome stream_socket::shutdown_write() {
    switch (phase_) {
    case phase::listening:
        return 0;
    case phase::connecting:
        disconnect();
        return 0;
    case phase::fresh:
        return failed_with(std::errc::not_connected);
    case phase::over:
        return tcp() ? failed_with(std::errc::not_connected) : 0;
    case phase::connected:
        break;
    }
    if (!std::exchange(sent_end_, true)) {
        tell([](stream_socket& peer) { peer.end_received(); },
             [](stream_socket& self) { self.end_acknowledged(); });
    }
    changed();
    return 0;
}

outcome stream_socket::set_option(platform::socket_option option, int value) {
    auto const size = static_cast<std::size_t>(std::max(value, 1));
    switch (option) {
    case platform::socket_option::no_delay:
        return tcp() ? 0 : failed_with(std::errc::operation_not_supported);
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
    case platform::socket_option::linger:
        resets_on_close_ = value == 0;
        return 0;
    case platform::socket_option::broadcast:
        return 0;
    case platform::socket_option::multicast_interface:
        break;
    }
    return failed_with(std::errc::invalid_argument);
}

outcome stream_socket::peer_endpoint(endpoint& e) const {
    if (phase_ != phase::connected && (tcp() || phase_ != phase::over)) {
        return failed_with(std::errc::not_connected);
    }
    e = network::shown(remote_, family_);
    return 0;
}

// Listening.

outcome stream_socket::bind(endpoint const& where) {
    // A unix socket may also be named later.
    if (tcp() && phase_ != phase::fresh && can_name(where)) {
        return failed_with(std::errc::invalid_argument);
    }
    return choose(where);
}

outcome stream_socket::listen(int backlog) {
    if ((phase_ != phase::fresh && phase_ != phase::listening) || (is_unix() && !holds_address_)) {
        return failed_with(std::errc::invalid_argument);
    }
    if (phase_ == phase::fresh) {
        if (!holds_address_) {
            if (auto const taken = take(local_); taken < 0) {
                return taken;
            }
        }
        if (tcp() && network_.is_listened_to(*this)) {
            return failed_with(std::errc::address_in_use);
        }
    }
    phase_ = phase::listening;
    most_backlog_ =
        static_cast<std::size_t>(backlog < 0 || backlog > most_backlog ? most_backlog : backlog);
    changed();
    return 0;
}

outcome stream_socket::accepts() const {
    return listening() ? 0 : failed_with(std::errc::invalid_argument);
}

std::shared_ptr<node> stream_socket::accept() {
    if (backlog_.empty()) {
        return nullptr;
    }
    auto const first = std::move(backlog_.front());
    backlog_.pop_front();
    return first;
}

// Connecting.

outcome stream_socket::connect(endpoint const& peer) {
    if (is_unix()) {
        return connect_unix(peer);
    }
    switch (phase_) {
    case phase::listening:
        return failed_with(std::errc::already_connected);
    case phase::connecting:
        return failed_with(std::errc::connection_already_in_progress);
    case phase::connected:
        return std::exchange(announced_, true) ? failed_with(std::errc::already_connected) : 0;
    case phase::over:
        if (announced_) {
            return failed_with(std::errc::already_connected);
        }
        disconnect();
        return take_error(std::errc::connection_aborted);
    case phase::fresh:
        break;
    }
    if (!can_name(peer)) {
        return cannot_name();
    }
    remote_ = network::destination(network::kept(peer));
    auto const source = network::source(remote_);
    if (!holds_address_) {
        auto const taken = take(source);
        if (taken < 0) {
            return failed_with(std::errc::address_not_available);
        }
    } else if (network::is_any(local_)) {
        local_ = source.with_port(local_.port());
    }
    phase_ = phase::connecting;
    latency_ = around_.latency();
    auto const attempt = ++attempt_;
    around_.time.after(latency_, [self = weak_from_this(), attempt] {
        if (auto const s = self.lock()) {
            s->knock(attempt, 0);
        }
    });
    return failed_with(std::errc::operation_in_progress);
}

outcome stream_socket::connect_unix(endpoint const& peer) {
    if (!can_name(peer) || peer.address_bytes().empty()) {
        return failed_with(std::errc::invalid_argument);
    }
    bound_socket* found = nullptr;
    if (auto const known = network_.find_name(peer, kind(), found); known < 0) {
        return known;
    }
    auto& target = static_cast<stream_socket&>(*found);
    if (!target.listening()) {
        return failed_with(std::errc::connection_refused);
    }
    if (target.backlog_.size() > target.most_backlog_) {
        return failed_with(std::errc::no_buffer_space);
    }
    if (phase_ != phase::fresh) {
        return failed_with(listening() ? std::errc::invalid_argument
                                       : std::errc::already_connected);
    }
    remote_ = peer;
    phase_ = phase::connected;
    target.backlog_.push_back(meet(target));
    target.changed();
    changed();
    return 0;
}

std::shared_ptr<stream_socket> stream_socket::meet(stream_socket& listener) {
    auto made = std::make_shared<stream_socket>(around_, network_, listener.family_);
    made->phase_ = phase::connected;
    made->announced_ = true;
    made->local_ = remote_;
    made->remote_ = local_;
    made->latency_ = latency_;
    made->reuses_address_ = listener.reuses_address_;
    made->reuses_port_ = listener.reuses_port_;
    made->resets_on_close_ = listener.resets_on_close_;
    made->send_limit_ = listener.send_limit_;
    made->receive_limit_ = listener.receive_limit_;
    made->peer_ = weak_from_this();
    peer_ = made;
    ++around_.connections;
    return made;
}

// What asks for a connection has come to where it is asked for.
void stream_socket::knock(std::uint64_t attempt, int tries) {
    if (phase_ != phase::connecting || attempt != attempt_) {
        return;
    }
    auto const later = [&](std::int64_t delay, auto what) {
        around_.time.after(delay, [self = weak_from_this(), attempt, what] {
            auto const s = self.lock();
            if (s != nullptr && s->phase_ == phase::connecting && s->attempt_ == attempt) {
                what(*s);
            }
        });
    };
    auto* const target = static_cast<stream_socket*>(network_.receiver(kind(), local_, remote_));
    bool const silent = network_.is_silent(remote_);
    if (!silent && target == nullptr) {
        later(latency_, [](stream_socket& s) { s.fail_connect(std::errc::connection_refused); });
        return;
    }
    if (silent || target->backlog_.size() > target->most_backlog_) {
        auto const wait = second << tries;
        if (tries == knocks) {
            later(wait, [](stream_socket& s) { s.fail_connect(std::errc::timed_out); });
        } else {
            later(wait, [attempt, tries](stream_socket& s) { s.knock(attempt, tries + 1); });
        }
        return;
    }
    auto const made = meet(*target);
    network_.share_port(*made);
    made->holds_address_ = true;
    target->backlog_.push_back(made);
    target->changed();
    made->tell([](stream_socket& client) { client.established(); },
               [](stream_socket& self) { self.reset(); });
}

void stream_socket::established() {
    phase_ = phase::connected;
    changed();
}

void stream_socket::fail_connect(std::errc why) {
    error_ = why;
    go_over();
    changed();
}

/// Back to where a socket begins.
void stream_socket::disconnect() noexcept {
    phase_ = phase::fresh;
    peer_.reset();
    sent_end_ = got_end_ = announced_ = false;
    outstanding_ = 0;
    if (!chose_address_) {
        leave();
        local_ = unspecified(family_);
    }
}

outcome stream_socket::connect_outcome() {
    if ((state() & (can_write | hung_up | failed)) == 0) {
        return again;
    }
    return error_ != std::errc() ? take_error({}) : 0;
}

// What comes from the peer.

void stream_socket::tell(arrival to_peer, arrival when_undelivered) {
    around_.time.after(latency_, [to = peer_, from = weak_from_this(), to_peer = std::move(to_peer),
                                  when_undelivered = std::move(when_undelivered),
                                  delay = latency_] {
        auto const peer = to.lock();
        // A peer that was disconnected is another's, or nobody's.
        if (peer != nullptr && !peer->peer_.owner_before(from) && !from.owner_before(peer->peer_)) {
            to_peer(*peer);
        } else if (auto const self = from.lock(); self != nullptr && when_undelivered) {
            self->around_.time.after(delay, [from, when_undelivered] {
                if (auto const sender = from.lock()) {
                    when_undelivered(*sender);
                }
            });
        }
    });
}

void stream_socket::arrive(std::span<std::byte const> bytes) {
    if (phase_ == phase::connected) {
        received_.push(bytes);
        changed();
    }
}

void stream_socket::acknowledge(std::size_t bytes) {
    bool const had_room = has_room();
    outstanding_ -= std::min(bytes, outstanding_);
    if (!had_room && has_room()) {
        changed();
    }
}

void stream_socket::end_received() {
    if (phase_ != phase::connected) {
        return;
    }
    got_end_ = true;
    if (tcp() && sent_end_) {
        tell([](stream_socket& peer) { peer.end_acknowledged(); });
        go_over();
    }
    changed();
}

void stream_socket::end_acknowledged() {
    if (tcp() && phase_ == phase::connected && sent_end_ && got_end_) {
        go_over();
        changed();
    }
}

void stream_socket::reset() {
    if (phase_ != phase::connected) {
        return;
    }
    error_ = got_end_ ? std::errc::broken_pipe : std::errc::connection_reset;
    go_over();
    changed();
}

void stream_socket::local_peer_closed(bool unread) {
    if (unread) {
        error_ = std::errc::connection_reset;
    }
    go_over();
    changed();
}

void stream_socket::go_over() noexcept {
    phase_ = phase::over;
    outstanding_ = 0;
    leave_unchosen();
}

// Closing.

void stream_socket::close() {
    leave();
    if (phase_ == phase::listening) {
        for (auto const& unaccepted : backlog_) {
            unaccepted->leave();
            unaccepted->close_connection(true);
        }
        backlog_.clear();
    }
    if (phase_ == phase::connected) {
        close_connection(tcp() && resets_on_close_);
    }
    phase_ = phase::over;
}

void stream_socket::close_connection(bool abort) {
    if (phase_ != phase::connected) {
        return;
    }
    bool const unread = !received_.empty();
    if (!tcp()) {
        tell([lost = unread || abort](stream_socket& peer) { peer.local_peer_closed(lost); });
    } else if (abort || unread) {
        tell([](stream_socket& peer) { peer.reset(); });
    } else if (!std::exchange(sent_end_, true)) {
        tell([](stream_socket& peer) { peer.end_received(); });
    }
}

}  // namespace plumb::sim
