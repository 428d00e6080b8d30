// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_awaitable.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation.hpp>

namespace plumb {

/// A sender that completes at a point in time, with `result<void>`: success, or `operation_canceled`.
///
/// It never completes early; it may be late by the time that the loop is busy and by the timer slack of the system
/// (50 us for an ordinary Linux thread). An infinite deadline waits for cancellation.
class async_wait {
public:
    using result_type = plumb::result<void>;
    static constexpr auto awaited_as = io_operation::action::accept;
    static constexpr auto waits_for = wait_kind::time;

    /// Waits on the multiplexer of this thread.
    explicit async_wait(deadline when) noexcept : async_wait(io_multiplexer::this_thread(), when) {}
    async_wait(io_multiplexer& where, deadline when) noexcept : where_(&where), when_(when) {}

    class operation : public io_operation {
    protected:
        operation(async_wait const& sender, deliver_function deliver) noexcept
            : io_operation(action::wait, nullptr, sender.when_, deliver) {
            choose_multiplexer(*sender.where_);
        }

        [[nodiscard]] result_type result() const noexcept {
            if (outcome() < 0) {
                return error();
            }
            return {};
        }
    };

private:
    io_multiplexer* where_;
    deadline when_;
};

/// `co_await co_wait(when)` gives success at `when`, or `operation_canceled`.
inline io_awaitable<async_wait> co_wait(deadline when) noexcept {
    return io_awaitable<async_wait>(async_wait(when));
}

}  // namespace plumb
