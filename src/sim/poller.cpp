// SPDX-License-Identifier: Apache-2.0
#include "sim/poller.hpp"

#include "sim/node.hpp"

#include <algorithm>
#include <utility>

namespace plumb::sim {
namespace {

/// What the poller says of a state.
std::uint32_t readiness_of(std::uint32_t state) noexcept {
    std::uint32_t ready = 0;
    if ((state & (can_read | read_ended | hung_up | failed)) != 0) {
        ready |= platform::readable;
    }
    if ((state & (can_write | hung_up | failed)) != 0) {
        ready |= platform::writable;
    }
    if ((state & (read_ended | hung_up | failed)) != 0) {
        ready |= platform::read_ended;
    }
    return ready;
}

}  // namespace

void poller::changed(std::shared_ptr<watching> const& w) {
    if (!std::exchange(w->queued, true)) {
        queue_.push_back(w);
    }
}

std::size_t poller::take(platform::poll_event* events, std::size_t capacity, random& pick) {
    std::erase_if(queue_, [](auto const& w) {
        if (w->target != nullptr && readiness_of(w->target->state()) != 0) {
            return false;
        }
        w->queued = false;
        return true;
    });
    if (queue_.empty()) {
        return 0;
    }
    auto const count = std::min(capacity, 1 + static_cast<std::size_t>(pick.below(queue_.size())));
    for (std::size_t i = 0; i < count; ++i) {
        std::swap(queue_[i], queue_[i + static_cast<std::size_t>(pick.below(queue_.size() - i))]);
        watching& w = *queue_[i];
        events[i] = {w.key, readiness_of(w.target->state())};
        w.queued = false;
    }
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
}

}  // namespace plumb::sim
