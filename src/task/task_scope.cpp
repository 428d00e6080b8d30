// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task_scope.hpp>

#include <plumb/task/cancellation.hpp>

namespace plumb {

void task_scope::fail(std::exception_ptr e) noexcept {
    if (stop_.stop_requested() && is_cancellation(e)) {
        return;
    }
    if (!failed_.exchange(true)) {
        failure_ = std::move(e);
        stop_.request_stop();
    }
}

}  // namespace plumb
