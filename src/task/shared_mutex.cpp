// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/shared_mutex.hpp>

namespace plumb {

bool shared_mutex::take(access how) noexcept {
    if (written_ || (how == access::write && readers_ != 0)) {
        return false;
    }
    written_ = how == access::write;
    readers_ += how == access::read ? 1 : 0;
    return true;
}

void shared_mutex::let_in(wait_list::granted& to) noexcept {
    while (!waiters_.empty() && take(static_cast<lock_awaitable&>(*waiters_.first()).how_)) {
        waiters_.grant_first(to);
    }
}

void shared_mutex::let_in() noexcept {
    wait_list::granted to;
    std::scoped_lock const locked(lock_);
    let_in(to);
}

void shared_mutex::give_back(access how) noexcept {
    wait_list::granted to;
    std::scoped_lock const locked(lock_);
    written_ = false;
    readers_ -= how == access::read ? 1 : 0;
    let_in(to);
}

shared_mutex::held shared_mutex::try_take(access how) noexcept {
    std::scoped_lock const locked(lock_);
    return waiters_.empty() && take(how) ? held(*this, how) : held();
}

}  // namespace plumb
