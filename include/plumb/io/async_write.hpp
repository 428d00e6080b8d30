// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>
#include <plumb/io/io_awaitable.hpp>
#include <plumb/io/io_operation.hpp>

#include <chrono>

namespace plumb {

/// The sender of `io_handle::write`: the same arguments, result and errors, and `operation_canceled`.
/// Completes with `io_result<const_buffers>`. Cancel-safe: yes, a write that moved bytes tells how many.
/// Source: D2052R0 4.3.
class async_write {
public:
    using result_type = io_result<const_buffers>;
    static constexpr auto awaited_as = io_operation::action::write;
    static constexpr auto waits_for = wait_kind::write;

    async_write(io_handle& target, io_request<const_buffers> request, deadline limit = {}) noexcept
        : target_(&target), request_(request), limit_(limit) {}

    /// Named as the blocking forms are: a deadline of zero, relative, absolute.
    static async_write try_async_write(io_handle& target,
                                       io_request<const_buffers> request) noexcept {
        return async_write(target, request, std::chrono::nanoseconds(0));
    }
    template <class Rep, class Period>
    static async_write
    try_async_write_for(io_handle& target, io_request<const_buffers> request,
                        std::chrono::duration<Rep, Period> const& limit) noexcept {
        return async_write(target, request, limit);
    }
    template <class Clock, class Duration>
    static async_write
    try_async_write_until(io_handle& target, io_request<const_buffers> request,
                          std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return async_write(target, request, limit);
    }

    class operation : public io_operation {
    protected:
        operation(async_write const& sender, deliver_function deliver) noexcept
            : io_operation(*sender.target_, sender.request_, sender.limit_, deliver) {}

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return written();
        }
    };

private:
    io_handle* target_;
    io_request<const_buffers> request_;
    deadline limit_;
};

inline io_awaitable<async_write> io_handle::co_write(io_request<const_buffers> request,
                                                     deadline limit) noexcept {
    return io_awaitable<async_write>(async_write(*this, request, limit));
}

}  // namespace plumb
