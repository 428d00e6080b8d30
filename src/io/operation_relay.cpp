// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/operation_relay.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include "platform/seam.hpp"

namespace plumb {

operation_relay::operation_relay(operation_relay&& idle) noexcept : operation_relay() {
    require(!idle.started(),
            "an i/o operation was moved after its start: it is pinned until set_done");
}

operation_relay::~operation_relay() {
    if ((state_.load() & on_its_way) != 0) {
        multiplexer_->fetch_requests();
    }
}

io_status operation_relay::start(io_operation& op) noexcept {
    operation_ = &op;
    multiplexer_ = &op.chosen_multiplexer();
    bool const here = multiplexer_->is_inside();
    begun_ = here;
    std::uint8_t idle = 0;
    require(state_.compare_exchange_strong(idle, here ? requested : requested | on_its_way),
            "an i/o operation was started twice: reset it once it is completed");
    if (here) {
        return op.start_queued();
    }
    multiplexer_->request(*this);
    return io_status::pending;
}

void operation_relay::cancel() noexcept {
    std::uint8_t now = state_.load();
    do {
        if ((now & requested) == 0 || (now & (cancelled | met_end)) != 0) {
            return;
        }
    } while (!state_.compare_exchange_weak(now, now | cancelled | on_its_way));
    if ((now & on_its_way) != 0) {
        return;
    }
    multiplexer_->request(*this);
}

void operation_relay::fetch() noexcept {
    if (started()) {
        multiplexer_->fetch_requests();
    }
}

void operation_relay::arrive(owned_work& node, fate f) noexcept {
    auto& self = static_cast<operation_relay&>(node);
    io_operation& op = *self.operation_;
    std::uint8_t const before = self.state_.fetch_and(static_cast<std::uint8_t>(~on_its_way));
    if (f == fate::dropped) {
        self.state_.fetch_or(met_end);
    } else if ((before & met_end) != 0) {
        --self.multiplexer_->pending_;
        op.deliver_later(op.outcome());
    } else if (self.begun_) {
        op.cancel();
    } else {
        self.begun_ = true;
        op.start_arrived(*self.multiplexer_, (before & cancelled) != 0);
    }
}

bool operation_relay::end() noexcept {
    if ((state_.fetch_or(met_end) & on_its_way) == 0) {
        state_.fetch_or(told_end);
        return true;
    }
    ++multiplexer_->pending_;  // until the node has arrived
    return false;
}

void operation_relay::reset() noexcept {
    state_.store(0);
    begun_ = false;
}

}  // namespace plumb
