// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>
#include <plumb/task/mutex.hpp>
#include <plumb/task/task.hpp>
#include <plumb/task/wait_list.hpp>

#include <coroutine>
#include <mutex>
#include <system_error>

namespace plumb {

/// Waits for a state that a mutex guards: `while (!ready) { (co_await changed.wait(held)).value(); }`. Whoever changes
/// the state notifies, with the mutex or without it.
/// Threads: any. Allocates: never, but for the frame of `wait`.
class condition {
public:
    /// Unlocks the mutex, awaits a notification, and locks the mutex again before it goes on, in every case.
    /// Errors: operation_canceled, also for a stop from before. Cancel-safe: a cancelled wait takes no notification
    /// from others. Allocates: its frame, from the pool; throws bad_alloc at the call.
    task<result<void>> wait(mutex::held& held);

    /// Lets the one that waits longest go on.
    void notify_one() noexcept {
        wait_list::granted to;
        std::scoped_lock const locked(lock_);
        waiters_.grant_first(to);
    }
    /// Lets all that wait go on, one after another.
    void notify_all() noexcept {
        wait_list::granted to;
        std::scoped_lock const locked(lock_);
        waiters_.grant_all(to);
    }

private:
    class awaitable;

    brief_lock lock_;
    wait_list waiters_{lock_, "condition"};
};

}  // namespace plumb
