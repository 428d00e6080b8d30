// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/event.hpp>

namespace plumb {

void event::set() noexcept {
    wait_list::granted to;
    std::scoped_lock const locked(lock_);
    if (!automatic_) {
        set_ = true;
        waiters_.grant_all(to);
    } else {
        set_ = waiters_.grant_first(to) == nullptr;
    }
}

void event::reset() noexcept {
    std::scoped_lock const locked(lock_);
    set_ = false;
}

bool event::is_set() const noexcept {
    std::scoped_lock const locked(lock_);
    return set_;
}

}  // namespace plumb
