// SPDX-License-Identifier: Apache-2.0
#include "io/io_errand.hpp"

#include <plumb/base/assert.hpp>
#include <plumb/exec/pooled_memory.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include "platform/seam.hpp"

#include <new>

namespace plumb {

io_status io_errand::start(io_operation& op) noexcept {
    require(!op.started(), "an i/o operation was started twice: reset it once it is completed");
    io_multiplexer& m = op.chosen_multiplexer();
    require(m.crew_ != nullptr,
            "i/o was started with the stop token of an executor that several threads are inside "
            "of, on a multiplexer that is for one");
    // Here and not when it arrives, so that who closes the handle meanwhile finds it registered.
    if (!op.is_registered()) {
        bool const visits = m.begin_visit();
        bool const registered = op.is_registered() || op.attach();
        if (visits) {
            m.end_visit();
        }
        if (!registered) {
            op.state_.now = io_operation::phase::done;
            return io_status::completed;
        }
    }
    void* const memory = pooled_allocate(sizeof(io_errand));
    if (memory == nullptr) {
        op.outcome_ = platform::failed_with(std::errc::not_enough_memory);
        op.state_.now = io_operation::phase::done;
        return io_status::completed;
    }
    auto& self = *::new (memory) io_errand(op, m);
    op.multiplexer_ = &m;
    op.waiting_ = &self;
    op.tell(&io_errand::on_end);
    op.state_.now = io_operation::phase::sent;
    op.env_->stop.call_on_stop(self);
    m.request(self);  // the last touch
    return io_status::sent;
}

void io_errand::on_stop(stop_callback_link& node) noexcept {
    auto& self = static_cast<io_errand&>(static_cast<stop_callback_node&>(node));
    std::uint8_t now = self.state_.load();
    do {
        if ((now & over) != 0) {
            return;
        }
    } while (!self.state_.compare_exchange_weak(now, now | stopped | away));
    if ((now & away) == 0) {
        self.multiplexer_.request(self);
    }
}

void io_errand::arrive() noexcept {
    std::uint8_t const before = state_.fetch_and(static_cast<std::uint8_t>(~away));
    if ((before & over) != 0) {
        --multiplexer_.pending_;
        go_home();
    } else if (begun_) {
        operation_.cancel();
    } else {
        begun_ = true;
        operation_.state_.now = io_operation::phase::idle;
        operation_.start_arrived(multiplexer_, (before & stopped) != 0 || withdrawn_);
    }
}

void io_errand::on_end(io_operation& op) noexcept {
    io_errand& self = of(op);
    op.state_.now = io_operation::phase::sent;
    if ((self.state_.fetch_or(over) & away) == 0) {
        self.go_home();
        return;
    }
    ++self.multiplexer_.pending_;  // until the node has arrived
}

void io_errand::go_home() noexcept {
    if (!withdrawn_) {
        goes_home_ = true;
        operation_.env_->executor.post(this);  // the last touch
    }
}

void io_errand::end(owned_work& node, fate f) noexcept {
    auto& self = static_cast<io_errand&>(node);
    if (f == fate::run && !self.goes_home_) {
        self.arrive();
        return;
    }
    auto const waiting = self.waiting_;
    if (!self.goes_home_) {  // the multiplexer has ended first
        self.operation_.outcome_ = platform::failed_with(std::errc::operation_canceled);
    }
    self.operation_.state_.now = io_operation::phase::done;
    self.destroy();
    if (f == fate::run) {
        waiting.resume();
    }
}

void io_errand::withdraw(io_operation& op) noexcept {
    io_errand& self = of(op);
    require(!self.goes_home_,
            "a coroutine was destroyed while the end of its i/o was on the way to its executor");
    self.withdrawn_ = true;
    self.unregister();  // first: a stop that is under way sends the errand
    if ((self.state_.load() & away) != 0) {
        self.multiplexer_.fetch_requests();
    }
    self.destroy();
}

void io_errand::destroy() noexcept {
    unregister();
    operation_.tell_nobody();
    this->~io_errand();
    pooled_deallocate(this, sizeof(io_errand));
}

}  // namespace plumb
