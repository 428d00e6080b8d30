// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/io_context.hpp"
#include "networking_ts/operation.hpp"

#include <plumb/io/async_wait.hpp>

#include <chrono>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

namespace networking_ts {

/// Completes at a point of time; in a simulated world, of its time.
class steady_timer {
public:
    using clock_type = std::chrono::steady_clock;
    using duration = clock_type::duration;
    using time_point = clock_type::time_point;
    using executor_type = io_context::executor_type;

    explicit steady_timer(io_context& c)
        : shared_(std::make_shared<io_object>(c.lowest_layer())),
          expiry_(plumb::io_multiplexer::steady_now()) {}
    steady_timer(io_context& c, time_point when) : steady_timer(c) { expiry_ = when; }
    steady_timer(io_context& c, duration wait) : steady_timer(c) { expiry_ += wait; }
    steady_timer(steady_timer&&) noexcept = default;
    steady_timer& operator=(steady_timer&& other) noexcept {
        std::swap(shared_, other.shared_);
        std::swap(expiry_, other.expiry_);
        return *this;
    }
    ~steady_timer() {
        if (shared_ != nullptr) {
            cancel();
        }
    }

    [[nodiscard]] executor_type get_executor() const noexcept {
        return shared_->context().get_executor();
    }
    [[nodiscard]] time_point expiry() const noexcept { return expiry_; }

    /// Also cancels what waits.
    void expires_at(time_point when) {
        cancel();
        expiry_ = when;
    }
    void expires_after(duration wait) { expires_at(plumb::io_multiplexer::steady_now() + wait); }

    /// Ends all waits: they complete with operation_canceled.
    void cancel() {
        inside_of(*shared_, [s = shared_] { s->cancel(); });
    }

    /// Handler: `void(std::error_code)`.
    template <class Token>
    decltype(auto) async_wait(Token&& token) {
        return initiate_operation<void(std::error_code)>(waiting{shared_, expiry_},
                                                         std::forward<Token>(token));
    }

private:
    struct waiting {
        std::shared_ptr<io_object> shared;
        time_point until;

        [[nodiscard]] io_object& object() const noexcept { return *shared; }
        [[nodiscard]] plumb::async_wait sender() const noexcept {
            return {shared->context().multiplexer(), until};
        }
        static std::tuple<std::error_code> arguments(plumb::result<void>&& r) noexcept {
            return {r ? std::error_code() : r.error()};
        }
    };

    std::shared_ptr<io_object> shared_;
    time_point expiry_;
};

}  // namespace networking_ts
