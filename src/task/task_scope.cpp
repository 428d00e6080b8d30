// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task_scope.hpp>

#include <plumb/task/cancellation.hpp>

namespace plumb {

void task_scope::fail(task_failure failure) noexcept {
    if (stop_.stop_requested() && is_cancellation(failure.exception())) {
        return;
    }
    if (!failed_.exchange(true)) {
        failure_ = std::move(failure);
        stop_.request_stop();
    }
}

}  // namespace plumb
