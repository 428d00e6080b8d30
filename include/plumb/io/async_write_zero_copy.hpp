// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/wait_kind.hpp>
#include <plumb/io/zero_copy_operation.hpp>

namespace plumb {

/// The sender of `zero_copy_write`: `set_value` tells how much was taken, and `set_done` comes when the buffer is the
/// caller's again, which may be much later.
class async_write_zero_copy {
public:
    using result_type = io_result<const_buffers>;
    static constexpr auto awaited_as = io_operation::action::accept;
    static constexpr auto waits_for = wait_kind::write;

    async_write_zero_copy(stream_socket_handle& target, io_request<const_buffers> request,
                          deadline limit = {}) noexcept
        : target_(&target), request_(request), limit_(limit) {}

    class operation : public zero_copy_operation {
    protected:
        operation(async_write_zero_copy const& sender, deliver_function deliver) noexcept
            : zero_copy_operation(*sender.target_, sender.request_, sender.limit_, deliver) {}
    };

private:
    stream_socket_handle* target_;
    io_request<const_buffers> request_;
    deadline limit_;
};

}  // namespace plumb
