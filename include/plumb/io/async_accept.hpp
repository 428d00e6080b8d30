// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/io/io_awaitable.hpp>
#include <plumb/io/io_operation.hpp>

namespace plumb {

/// The sender of `listen_socket_handle::accept`: the same arguments, result and errors, and `operation_canceled`.
/// Completes with `result<stream_socket_handle>`; a connection that nobody takes is closed.
/// Cancel-safe: yes, no connection is lost. Source: D2052R0 4.3.
class async_accept {
public:
    using result_type = plumb::result<stream_socket_handle>;
    static constexpr auto awaited_as = io_operation::action::accept;
    static constexpr auto waits_for = wait_kind::accept;

    explicit async_accept(listen_socket_handle& target, deadline limit = {}) noexcept
        : target_(&target), limit_(limit) {}

    class operation : public io_operation {
    protected:
        operation(async_accept const& sender, deliver_function deliver) noexcept
            : io_operation(action::accept, sender.target_, sender.limit_, deliver) {}
        operation(operation&&) noexcept = default;
        ~operation() {
            end();
            drop_untaken();
        }

        /// Once.
        [[nodiscard]] result_type result() noexcept {
            if (outcome() < 0) {
                return error();
            }
            return stream_socket_handle(take_outcome());
        }
    };

private:
    listen_socket_handle* target_;
    deadline limit_;
};

inline io_awaitable<async_accept> listen_socket_handle::co_accept(deadline limit) noexcept {
    return io_awaitable<async_accept>(async_accept(*this, limit));
}

}  // namespace plumb
