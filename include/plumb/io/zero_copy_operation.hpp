// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/io_operation.hpp>

#include <utility>

namespace plumb {

/// The state of a write that the kernel may take from the caller's buffer even after it was counted.
///
/// Where it does, the state is held when the result is delivered, and delivered once more when it is released. Where it
/// copies instead (`epoll`, `sim`, unix sockets, several buffers, too many at once) it is never held.
class zero_copy_operation : public io_operation {
public:
    /// Whether the kernel still uses the buffer of a write whose result is known.
    [[nodiscard]] bool held() const noexcept { return held_; }

protected:
    zero_copy_operation(stream_socket_handle& target, io_request<const_buffers> const& request,
                        deadline limit, deliver_function deliver) noexcept
        : io_operation(action::write_zero_copy, &target, limit, deliver) {
        choose_buffers(request.buffers.untrimmed());
    }
    zero_copy_operation(zero_copy_operation&& idle) noexcept = default;
    /// Waits until the kernel has let go of the buffer.
    ~zero_copy_operation() {
        end();
        if (held_) {
            await_release();
        }
    }

    [[nodiscard]] bool first_delivery() noexcept { return !std::exchange(delivered_, true); }

    /// From released to idle.
    void rearm() noexcept;
    void rearm(const_buffers const& request) noexcept {
        rearm();
        choose_buffers(request.untrimmed());
    }

    /// Whether the coroutine waits for the release from now on; else it is released, or a stop was requested.
    bool suspend_until_released(std::coroutine_handle<> waiting, io_env const& env) noexcept;

    /// Nobody waits for the release any more.
    void drop_waiter() noexcept;

    [[nodiscard]] io_result<const_buffers> result() const noexcept {
        if (outcome() < 0) {
            return error();
        }
        return written();
    }

private:
    friend io_backend;

    void await_release() noexcept;
    static void on_released(io_operation& released) noexcept;
    static void on_stop_waiting(plumb::stop_callback_link& node) noexcept;

    bool held_ = false;
    bool delivered_ = false;
    bool awaited_ = false;  // by a coroutine, which a stop request reaches
};

}  // namespace plumb
