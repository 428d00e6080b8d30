// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>
#include <plumb/io/io_awaitable.hpp>
#include <plumb/io/io_operation.hpp>

#include <chrono>

namespace plumb {

/// The sender of `io_handle::barrier`: the same arguments, result and errors, and `operation_canceled`.
/// Writes count that were over before it was started. Completes with `io_result<const_buffers>`, the buffers of the
/// request. Cancel-safe: yes, only nobody knows then what is stored. Source: D2052R0 4.3.
class async_barrier {
public:
    using result_type = io_result<const_buffers>;
    static constexpr auto awaited_as = io_operation::action::barrier;
    static constexpr auto waits_for = wait_kind::barrier;

    explicit async_barrier(io_handle& target, io_request<const_buffers> request = {},
                           barrier_kind kind = barrier_kind::wait_data_only,
                           deadline limit = {}) noexcept
        : target_(&target), request_(request), limit_(limit), kind_(kind) {}

    /// Named as the blocking forms are: a deadline of zero, relative, absolute.
    static async_barrier
    try_async_barrier(io_handle& target, io_request<const_buffers> request = {},
                      barrier_kind kind = barrier_kind::wait_data_only) noexcept {
        return async_barrier(target, request, kind, std::chrono::nanoseconds(0));
    }
    template <class Rep, class Period>
    static async_barrier
    try_async_barrier_for(io_handle& target, io_request<const_buffers> request, barrier_kind kind,
                          std::chrono::duration<Rep, Period> const& limit) noexcept {
        return async_barrier(target, request, kind, limit);
    }
    template <class Clock, class Duration>
    static async_barrier
    try_async_barrier_until(io_handle& target, io_request<const_buffers> request, barrier_kind kind,
                            std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return async_barrier(target, request, kind, limit);
    }

    class operation : public io_operation {
    protected:
        operation(async_barrier const& sender, deliver_function deliver) noexcept
            : io_operation(action::barrier, sender.target_, sender.limit_, deliver) {
            choose_barrier(sender.request_, sender.kind_);
        }

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return write_request();
        }
    };

private:
    io_handle* target_;
    io_request<const_buffers> request_;
    deadline limit_;
    barrier_kind kind_;
};

inline io_awaitable<async_barrier> io_handle::co_barrier(io_request<const_buffers> request,
                                                         barrier_kind kind,
                                                         deadline limit) noexcept {
    return io_awaitable<async_barrier>(async_barrier(*this, request, kind, limit));
}

}  // namespace plumb
