// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/io/addressed_operation.hpp>
#include <plumb/io/io_awaitable.hpp>

namespace plumb {

/// The sender of `datagram_socket_handle::send`: the same arguments, result and errors, and `operation_canceled`.
/// Completes with `io_result<const_buffers>`. Cancel-safe: yes, a datagram is sent whole or not at all.
/// Source: D2052R0 4.3.
class async_send {
public:
    using result_type = io_result<const_buffers>;
    static constexpr auto awaited_as = io_operation::action::accept;
    static constexpr auto waits_for = wait_kind::write;

    async_send(datagram_socket_handle& target, io_request<const_buffers> request,
               endpoint const& to, deadline limit = {}) noexcept
        : target_(&target), request_(request), to_(to), limit_(limit) {}

    class operation : public addressed_operation {
    protected:
        operation(async_send const& sender, deliver_function deliver) noexcept
            : addressed_operation(action::send, sender.target_, sender.limit_, deliver,
                                  sender.to_) {
            choose_buffers(sender.request_.buffers);
        }

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return written();
        }
    };

private:
    datagram_socket_handle* target_;
    io_request<const_buffers> request_;
    endpoint to_;
    deadline limit_;
};

inline io_awaitable<async_send> datagram_socket_handle::co_send(io_request<const_buffers> request,
                                                                endpoint const& to,
                                                                deadline limit) noexcept {
    return io_awaitable<async_send>(async_send(*this, request, to, limit));
}

}  // namespace plumb
