// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/addressed_operation.hpp>
#include <plumb/io/io_awaitable.hpp>

namespace plumb {

/// The sender of `stream_socket_handle::connect`: the same arguments, result and errors, and `operation_canceled`.
/// Completes with `result<void>`. After a failure or a cancellation the handle can only be closed.
/// Source: D2052R0 4.3.
class async_connect {
public:
    using result_type = plumb::result<void>;
    static constexpr auto awaited_as = io_operation::action::accept;
    static constexpr auto waits_for = wait_kind::connect;

    async_connect(stream_socket_handle& target, endpoint const& peer, deadline limit = {}) noexcept
        : target_(&target), peer_(peer), limit_(limit) {}

    class operation : public addressed_operation {
    protected:
        operation(async_connect const& sender, deliver_function deliver) noexcept
            : addressed_operation(action::connect, sender.target_, sender.limit_, deliver,
                                  sender.peer_) {}

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return {};
        }
    };

private:
    stream_socket_handle* target_;
    endpoint peer_;
    deadline limit_;
};

inline io_awaitable<async_connect> stream_socket_handle::co_connect(endpoint const& peer,
                                                                    deadline limit) noexcept {
    return io_awaitable<async_connect>(async_connect(*this, peer, limit));
}

}  // namespace plumb
