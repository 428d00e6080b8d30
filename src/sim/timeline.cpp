// SPDX-License-Identifier: Apache-2.0
#include "sim/timeline.hpp"

#include <utility>

namespace plumb::sim {

void timeline::after(std::int64_t delay, std::function<void()> what) {
    if (delay <= 0) {
        what();
        return;
    }
    planned_.emplace(delay < never - now_ ? now_ + delay : never, std::move(what));
}

void timeline::advance_to(std::int64_t time) {
    while (next() <= time && next() != never) {
        auto const first = planned_.begin();
        move_to(first->first);
        auto const what = std::move(first->second);
        planned_.erase(first);
        what();
    }
    move_to(time);
}

void timeline::move_to(std::int64_t time) noexcept {
    if (time > now_) {
        now_ = time;
        ++moves_;
    }
}

}  // namespace plumb::sim
