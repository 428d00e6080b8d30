// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/io/addressed_operation.hpp>
#include <plumb/io/io_awaitable.hpp>

namespace plumb {

/// The sender of `datagram_socket_handle::receive`: the same arguments, result and errors, and `operation_canceled`.
/// Completes with `result<datagram_socket_handle::datagram>`. Cancel-safe: yes, no datagram is lost.
/// Source: D2052R0 4.3.
class async_receive {
public:
    using result_type = plumb::result<datagram_socket_handle::datagram>;
    static constexpr auto awaited_as = io_operation::action::accept;
    static constexpr auto waits_for = wait_kind::read;

    async_receive(datagram_socket_handle& target, io_request<buffers> request,
                  deadline limit = {}) noexcept
        : target_(&target), request_(request), limit_(limit) {}

    class operation : public addressed_operation {
    protected:
        operation(async_receive const& sender, deliver_function deliver) noexcept
            : addressed_operation(action::receive, sender.target_, sender.limit_, deliver) {
            choose_buffers(sender.request_.buffers);
        }

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return datagram_socket_handle::datagram{read(), address()};
        }
    };

private:
    datagram_socket_handle* target_;
    io_request<buffers> request_;
    deadline limit_;
};

inline io_awaitable<async_receive> datagram_socket_handle::co_receive(io_request<buffers> request,
                                                                      deadline limit) noexcept {
    return io_awaitable<async_receive>(async_receive(*this, request, limit));
}

}  // namespace plumb
