// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/manual_executor.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/resumption.hpp>

#include <utility>

namespace plumb {

std::coroutine_handle<>
manual_executor::executor_type::dispatch(std::coroutine_handle<> h) const noexcept {
    if (running_in_this_thread()) {
        return h;
    }
    context_->post(make_resumption(h));
    return std::noop_coroutine();
}

manual_executor::~manual_executor() {
    require(!running_, "a manual_executor was destroyed from inside its run");
    running_ = true;
    // Work that is queued may be part of a coroutine, and a coroutine may queue some when it is destroyed.
    do {
        while (work* const item = pop()) {
            owned_work::drop(*item);
        }
    } while (roots_.destroy_youngest());
}

work* manual_executor::pop() noexcept {
    work* const item = queue_.pop();
    count_ -= item != nullptr ? 1 : 0;
    return item;
}

bool manual_executor::run_one() noexcept {
    work* const item = pop();
    if (item == nullptr) {
        return false;
    }
    bool const outer = std::exchange(running_, true);
    (*item)();
    running_ = outer;
    return true;
}

std::size_t manual_executor::run() noexcept {
    std::size_t ran = 0;
    while (run_one()) {
        ++ran;
    }
    return ran;
}

}  // namespace plumb
