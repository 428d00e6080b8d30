// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>
#include <plumb/io/io_awaitable.hpp>
#include <plumb/io/io_operation.hpp>

#include <chrono>

namespace plumb {

/// The sender of `io_handle::read`: the same arguments, result and errors, and `operation_canceled`.
/// Completes with `io_result<buffers>`. Cancel-safe: yes, no byte is lost. Source: D2052R0 4.3.
class async_read {
public:
    using result_type = io_result<buffers>;
    static constexpr auto awaited_as = io_operation::action::read;
    static constexpr auto waits_for = wait_kind::read;

    async_read(io_handle& target, io_request<buffers> request, deadline limit = {}) noexcept
        : target_(&target), request_(request), limit_(limit) {}

    /// Named as the blocking forms are: a deadline of zero, relative, absolute.
    static async_read try_async_read(io_handle& target, io_request<buffers> request) noexcept {
        return async_read(target, request, std::chrono::nanoseconds(0));
    }
    template <class Rep, class Period>
    static async_read try_async_read_for(io_handle& target, io_request<buffers> request,
                                         std::chrono::duration<Rep, Period> const& limit) noexcept {
        return async_read(target, request, limit);
    }
    template <class Clock, class Duration>
    static async_read
    try_async_read_until(io_handle& target, io_request<buffers> request,
                         std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return async_read(target, request, limit);
    }

    class operation : public io_operation {
    protected:
        operation(async_read const& sender, deliver_function deliver) noexcept
            : io_operation(*sender.target_, sender.request_, sender.limit_, deliver) {}

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return read();
        }
    };

private:
    io_handle* target_;
    io_request<buffers> request_;
    deadline limit_;
};

inline io_awaitable<async_read> io_handle::co_read(io_request<buffers> request,
                                                   deadline limit) noexcept {
    return io_awaitable<async_read>(async_read(*this, request, limit));
}

}  // namespace plumb
