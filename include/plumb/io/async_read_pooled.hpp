// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/pooled_buffer.hpp>
#include <plumb/handle/io_handle.hpp>
#include <plumb/io/io_awaitable.hpp>
#include <plumb/io/io_operation.hpp>

namespace plumb {

/// Reads up to `most` bytes into pooled memory that is taken when data is there, so that a read that waits holds none.
/// Completes with `result<pooled_buffer>`, empty at the end of the stream. Errors: as `async_read`, and
/// not_enough_memory. Cancel-safe: yes, no byte is lost.
class async_read_pooled {
public:
    using result_type = plumb::result<pooled_buffer>;
    static constexpr auto awaited_as = io_operation::action::read_pooled;
    static constexpr auto waits_for = wait_kind::read;

    async_read_pooled(io_handle& target, std::size_t most, deadline limit = {}) noexcept
        : target_(&target), most_(most), limit_(limit) {}

    class operation : public io_operation {
    protected:
        operation(async_read_pooled const& sender, deliver_function deliver) noexcept
            : io_operation(action::read_pooled, sender.target_, sender.limit_, deliver),
              most_(sender.most_) {
            choose_capacity(most_);
        }
        operation(operation&&) noexcept = default;
        ~operation() {
            end();
            if (completed() && outcome() > 0) {
                drop_untaken();
            }
        }

        /// Once.
        [[nodiscard]] result_type result() noexcept {
            if (outcome() < 0) {
                return error();
            }
            pooled_buffer block = take_block();
            choose_capacity(most_);
            return block;
        }

    private:
        std::size_t most_;
    };

private:
    io_handle* target_;
    std::size_t most_;
    deadline limit_;
};

}  // namespace plumb
