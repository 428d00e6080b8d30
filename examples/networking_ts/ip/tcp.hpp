// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/buffer.hpp"
#include "networking_ts/io_context.hpp"
#include "networking_ts/ip/address.hpp"
#include "networking_ts/operation.hpp"
#include "networking_ts/stream_errc.hpp"

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>

#include <cstdint>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

namespace networking_ts {

struct socket_base {
    enum shutdown_type { shutdown_send };
};

/// A handle of plumb that belongs to a socket or an acceptor and to its operations in flight.
///
/// Closing ends these with operation_canceled. From another thread than the context's it is posted there, where there
/// have been operations: so the handle may be closed a moment later.
template <class Handle>
class owned_handle {
public:
    struct shared_state : io_object {
        using io_object::io_object;
        Handle handle;
    };

    owned_handle(plumb::io_context& c, Handle h) : state_(std::make_shared<shared_state>(c)) {
        state_->handle = std::move(h);
        state_->handle.set_multiplexer(c.multiplexer());
    }
    owned_handle(owned_handle&&) noexcept = default;
    owned_handle& operator=(owned_handle&& other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~owned_handle() {
        if (state_ != nullptr) {
            end();
        }
    }

    [[nodiscard]] std::shared_ptr<shared_state> const& state() const noexcept { return state_; }
    [[nodiscard]] Handle& operator*() const noexcept { return state_->handle; }
    [[nodiscard]] Handle* operator->() const noexcept { return &state_->handle; }
    [[nodiscard]] plumb::io_context& context() const noexcept { return state_->context(); }

    void cancel() {
        inside_of(*state_, [s = state_] { s->cancel(); });
    }
    void close() {
        auto& c = context();
        end();
        state_ = std::make_shared<shared_state>(c);
    }

private:
    void end() {
        inside_of(*state_, [s = state_] { (void)s->handle.close(); });
    }

    std::shared_ptr<shared_state> state_;
};

namespace ip {

/// The protocol: names its types.
class tcp {
public:
    class endpoint;
    class socket;
    class acceptor;
    class no_delay;

    static tcp v4() noexcept { return tcp(plumb::endpoint::family_type::ipv4); }
    static tcp v6() noexcept { return tcp(plumb::endpoint::family_type::ipv6); }
    [[nodiscard]] plumb::endpoint::family_type family() const noexcept { return family_; }
    friend bool operator==(tcp, tcp) noexcept = default;

private:
    explicit tcp(plumb::endpoint::family_type f) noexcept : family_(f) {}
    plumb::endpoint::family_type family_;
};

class tcp::endpoint {
public:
    endpoint() noexcept = default;
    /// Any address of this machine.
    endpoint(tcp const& protocol, std::uint16_t port) noexcept
        : at_(protocol == tcp::v4() ? plumb::endpoint::any_v4(port)
                                    : plumb::endpoint::any_v6(port)) {}
    endpoint(ip::address const& a, std::uint16_t port) noexcept : at_(a.with_port(port)) {}
    explicit endpoint(plumb::endpoint const& at) noexcept : at_(at) {}

    [[nodiscard]] tcp protocol() const noexcept { return tcp(at_.family()); }
    [[nodiscard]] ip::address address() const noexcept { return ip::address(at_); }
    [[nodiscard]] std::uint16_t port() const noexcept { return at_.port(); }
    [[nodiscard]] plumb::endpoint const& lowest_layer() const noexcept { return at_; }

    friend bool operator==(endpoint const&, endpoint const&) noexcept = default;
    friend auto operator<=>(endpoint const& a, endpoint const& b) noexcept {
        return a.at_ <=> b.at_;
    }

private:
    plumb::endpoint at_;
};

class tcp::no_delay {
public:
    explicit no_delay(bool on) noexcept : on_(on) {}
    [[nodiscard]] bool value() const noexcept { return on_; }

private:
    bool on_;
};

/// A connection. One read and one write at a time may be in flight; a second one completes with device_or_resource_busy.
class tcp::socket : public socket_base {
public:
    using executor_type = io_context::executor_type;
    using endpoint_type = tcp::endpoint;

    /// Closed.
    explicit socket(io_context& c) : socket(c.lowest_layer(), plumb::stream_socket_handle()) {}
    /// Open, but not connected.
    socket(io_context& c, tcp const& protocol) : socket(c) { open(protocol); }

    [[nodiscard]] executor_type get_executor() const noexcept {
        return handle_.context().get_executor();
    }
    [[nodiscard]] bool is_open() const noexcept { return handle_->is_open(); }

    void open(tcp const& protocol) { try_open(protocol).value(); }
    void close() { handle_.close(); }
    void cancel() { handle_.cancel(); }
    void shutdown(shutdown_type) { handle_->shutdown_write().value(); }
    void shutdown(shutdown_type, std::error_code& error) {
        error = error_of(handle_->shutdown_write());
    }
    void set_option(no_delay const& o) { handle_->set_no_delay(o.value()).value(); }

    [[nodiscard]] endpoint_type local_endpoint() const {
        return endpoint_type(handle_->local().value());
    }
    [[nodiscard]] endpoint_type remote_endpoint() const {
        return endpoint_type(handle_->peer().value());
    }

    /// Opens the socket if it is closed. Handler: `void(std::error_code)`.
    template <class Token>
    decltype(auto) async_connect(endpoint_type const& peer, Token&& token) {
        auto const opened = is_open() ? plumb::result<void>() : try_open(peer.protocol());
        return initiate_operation<void(std::error_code)>(
            connect{{handle_.state()}, peer.lowest_layer(), error_of(opened)},
            std::forward<Token>(token));
    }

    /// Reads at least one byte, unless the buffers have no room. Handler: `void(std::error_code, std::size_t)`;
    /// the end of the stream is `stream_errc::eof`.
    template <mutable_buffer_sequence Buffers, class Token>
    decltype(auto) async_read_some(Buffers const& into, Token&& token) {
        return initiate_operation<void(std::error_code, std::size_t)>(
            read{{handle_.state()}, gathered<mutable_buffer>(into)}, std::forward<Token>(token));
    }

    /// Writes at least one byte, unless there is none. Handler: `void(std::error_code, std::size_t)`.
    template <const_buffer_sequence Buffers, class Token>
    decltype(auto) async_write_some(Buffers const& from, Token&& token) {
        return initiate_operation<void(std::error_code, std::size_t)>(
            write{{handle_.state()}, gathered<const_buffer>(from)}, std::forward<Token>(token));
    }

private:
    friend acceptor;
    using owned = owned_handle<plumb::stream_socket_handle>;

    socket(plumb::io_context& c, plumb::stream_socket_handle h) : handle_(c, std::move(h)) {}

    plumb::result<void> try_open(tcp const& protocol) {
        auto opened = plumb::stream_socket_handle::stream_socket(protocol.family());
        if (!opened) {
            return opened.error();
        }
        handle_ = owned(handle_.context(), std::move(*opened));
        return {};
    }

    static std::error_code error_of(plumb::result<void> const& r) noexcept {
        return r ? std::error_code() : r.error();
    }

    struct operation_of {
        std::shared_ptr<owned::shared_state> state;
        [[nodiscard]] io_object& object() const noexcept { return *state; }
    };
    struct connect : operation_of {
        plumb::endpoint peer;
        std::error_code unopened;  // then the handle is closed, and the operation fails for that

        [[nodiscard]] plumb::async_connect sender() const noexcept { return {state->handle, peer}; }
        [[nodiscard]] std::tuple<std::error_code>
        arguments(plumb::result<void>&& r) const noexcept {
            return unopened ? unopened : error_of(r);
        }
    };
    struct read : operation_of {
        gathered<mutable_buffer> into;

        [[nodiscard]] plumb::async_read sender() const noexcept {
            return {state->handle, into.view()};
        }
        std::tuple<std::error_code, std::size_t>
        arguments(plumb::io_result<plumb::buffers>&& r) const noexcept {
            if (!r) {
                return {r.error(), 0};
            }
            bool const ended = r->empty() && !into.view().empty();
            return {ended ? make_error_code(stream_errc::eof) : std::error_code(), r->bytes()};
        }
    };
    struct write : operation_of {
        gathered<const_buffer> from;

        [[nodiscard]] plumb::async_write sender() const noexcept {
            return {state->handle, from.view()};
        }
        static std::tuple<std::error_code, std::size_t>
        arguments(plumb::io_result<plumb::const_buffers>&& r) noexcept {
            return {r ? std::error_code() : r.error(), r.bytes_transferred()};
        }
    };

    owned handle_;
};

/// Accepts connections.
class tcp::acceptor : public socket_base {
public:
    using executor_type = io_context::executor_type;
    using endpoint_type = tcp::endpoint;

    /// Listens; throws what the system says.
    acceptor(io_context& c, endpoint_type const& where)
        : handle_(c.lowest_layer(),
                  plumb::listen_socket_handle::listen(where.lowest_layer()).value()) {}

    [[nodiscard]] executor_type get_executor() const noexcept {
        return handle_.context().get_executor();
    }
    [[nodiscard]] bool is_open() const noexcept { return handle_->is_open(); }
    void close() { handle_.close(); }
    void cancel() { handle_.cancel(); }

    [[nodiscard]] endpoint_type local_endpoint() const {
        return endpoint_type(handle_->local().value());
    }

    /// Handler: `void(std::error_code, tcp::socket)`; the socket is one of the acceptor's context, closed after an error.
    template <class Token>
    decltype(auto) async_accept(Token&& token) {
        return initiate_operation<void(std::error_code, socket)>(accept{handle_.state()},
                                                                 std::forward<Token>(token));
    }

private:
    using owned = owned_handle<plumb::listen_socket_handle>;

    struct accept {
        std::shared_ptr<owned::shared_state> state;

        [[nodiscard]] io_object& object() const noexcept { return *state; }
        [[nodiscard]] plumb::async_accept sender() const noexcept {
            return plumb::async_accept(state->handle);
        }
        std::tuple<std::error_code, socket>
        arguments(plumb::result<plumb::stream_socket_handle>&& r) const {
            std::error_code const error = r ? std::error_code() : r.error();
            return {error,
                    socket(state->context(), r ? std::move(*r) : plumb::stream_socket_handle())};
        }
    };

    owned handle_;
};

}  // namespace ip
}  // namespace networking_ts
