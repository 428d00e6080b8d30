// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/base/result.hpp>
#include <plumb/task/wait_list.hpp>

#include <coroutine>
#include <cstddef>
#include <system_error>

namespace plumb {

/// Lets a number of coroutines meet, again and again: each waits until all have arrived, then all go on.
///
/// State: who has arrived is who waits, so that a cancelled wait takes its arrival back; see `wait_list.hpp`.
/// Threads: any. Allocates: never.
class barrier {
public:
    explicit barrier(std::size_t count) noexcept : count_(count) {
        require(count > 0, "a barrier was made for nobody to meet");
    }

    class [[nodiscard]] wait_awaitable : private waiter {
    public:
        explicit wait_awaitable(barrier& b) noexcept : waiter(b.arrived_), barrier_(b) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            wait_list::granted to;
            return suspend(h, env, [&] {
                bool const last = barrier_.arrived_.size() + 1 == barrier_.count_;
                if (last) {
                    barrier_.arrived_.grant_all(to);
                }
                return last;
            });
        }
        [[nodiscard]] result<void> await_resume() const noexcept {
            return granted() ? result<void>() : std::errc::operation_canceled;
        }

    private:
        barrier& barrier_;
    };

    /// Arrives, and awaits the others. Errors: operation_canceled, also for a stop from before; it hasn't arrived then.
    wait_awaitable arrive_and_wait() noexcept { return wait_awaitable(*this); }

private:
    brief_lock lock_;
    wait_list arrived_{lock_, "barrier"};
    std::size_t const count_;
};

}  // namespace plumb
