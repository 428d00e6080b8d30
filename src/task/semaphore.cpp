// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/semaphore.hpp>

namespace plumb {

void semaphore::release(std::size_t permits) noexcept {
    wait_list::granted to;
    std::scoped_lock const locked(lock_);
    while (permits != 0 && waiters_.grant_first(to) != nullptr) {
        --permits;
    }
    permits_ += permits;
}

}  // namespace plumb
