// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/wait_kind.hpp>
#include <plumb/io/zero_copy_operation.hpp>

#include <coroutine>

namespace plumb {

/// A write to a socket that spares the copy into the kernel, where the system can; worth it from some ten KiB on.
///
/// Held by the caller until it is released, because the kernel sends, and sends again, from the caller's buffer:
///
///     zero_copy_write written(socket, bytes);
///     auto const moved = co_await written;   // how much was taken
///     co_await written.released();           // now `bytes` may change
///
/// Without a ring, on unix sockets, and for requests of several buffers the bytes are copied, and it is released at
/// once. Destroying it waits until the kernel has let go, for as long as the peer doesn't take the bytes: close the
/// connection before where that may be. With the multiplexer's end it counts as released, although the kernel may still
/// send from the buffer. Once released it can be reset.
/// Errors, deadlines and cancellation: as `io_handle::co_write`. Cancel-safe: yes, it tells how much was written.
/// Threads: the multiplexer's. Allocates: the first one of a ring.
class [[nodiscard]] zero_copy_write : private zero_copy_operation {
public:
    zero_copy_write(stream_socket_handle& to, io_request<const_buffers> request,
                    deadline limit = {}) noexcept
        : zero_copy_operation(to, request, limit, nullptr) {}
    zero_copy_write(zero_copy_write const&) = delete;
    zero_copy_write& operator=(zero_copy_write const&) = delete;

    static constexpr auto waits_for = wait_kind::write;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiting, io_env const& env) noexcept {
        return start_awaited(waiting, env) != io_status::completed;
    }
    io_result<const_buffers> await_resume() const noexcept { return result(); }

    /// Whether the buffer is the caller's again. Before it is awaited, and after that.
    [[nodiscard]] bool is_released() const noexcept { return !held(); }

    /// Awaits that; after the result, by one coroutine. Gives success, or `operation_canceled` where a stop was
    /// requested and the buffer is still held.
    [[nodiscard]] auto released() noexcept {
        struct awaitable {
            zero_copy_write& of;
            bool waits = false;
            ~awaitable() {
                if (waits) {
                    of.drop_waiter();  // its coroutine was destroyed
                }
            }
            [[nodiscard]] bool await_ready() const noexcept { return of.is_released(); }
            bool await_suspend(std::coroutine_handle<> waiting, io_env const& env) noexcept {
                return waits = of.suspend_until_released(waiting, env);
            }
            [[nodiscard]] plumb::result<void> await_resume() noexcept {
                waits = false;
                if (!of.is_released()) {
                    return std::make_error_code(std::errc::operation_canceled);
                }
                return {};
            }
        };
        return awaitable{*this};
    }

    /// Makes it ready for another write, once it is released.
    void reset(const_buffers const& request) noexcept { rearm(request); }
};

}  // namespace plumb
