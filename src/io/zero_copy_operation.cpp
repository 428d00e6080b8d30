// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/zero_copy_operation.hpp>

#include <plumb/base/assert.hpp>

#include "io/io_backend.hpp"

namespace plumb {

void zero_copy_operation::rearm() noexcept {
    require(!held_, "a zero-copy write was reset while the kernel holds its buffer");
    io_operation::rearm();
    delivered_ = false;
}

void zero_copy_operation::await_release() noexcept {
    drop_waiter();
    tell_nobody();
    io_backend::await_release_of(*this);
}

void zero_copy_operation::drop_waiter() noexcept {
    if (awaited_) {
        stop_waiting();
        awaited_ = false;
        tell_nobody();
    } else {
        unqueue_delivery();
    }
}

bool zero_copy_operation::suspend_until_released(std::coroutine_handle<> waiting,
                                                 io_env const& env) noexcept {
    awaited_ = held_ && wait_again(waiting, env, &zero_copy_operation::on_stop_waiting);
    if (awaited_) {
        tell(&zero_copy_operation::on_released);
    }
    return awaited_;
}

void zero_copy_operation::on_released(io_operation& released) noexcept {
    auto& self = static_cast<zero_copy_operation&>(released);
    self.tell_nobody();
    self.env().executor.dispatch(self.waiting()).resume();
}

void zero_copy_operation::on_stop_waiting(plumb::stop_callback_link& node) noexcept {
    auto& self = static_cast<zero_copy_operation&>(operation_of(node));
    self.stop_waiting();
    self.awaited_ = false;
    self.deliver_later(self.outcome());
}

}  // namespace plumb
