// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>
#include <plumb/task/wait_list.hpp>

#include <coroutine>
#include <cstddef>
#include <mutex>
#include <system_error>

namespace plumb {

/// A number of permits, which coroutines take and give back; who finds none waits, first come, first served.
///
/// State: `permits_`, and who waits (never both), under `lock_`; of the waiters see `wait_list.hpp`. A permit that is
/// given back goes to a waiter directly.
/// Threads: any. Allocates: never.
class semaphore {
public:
    explicit semaphore(std::size_t permits) noexcept : semaphore(permits, "semaphore") {}

    class [[nodiscard]] acquire_awaitable : private waiter {
    public:
        explicit acquire_awaitable(semaphore& s) noexcept : waiter(s.waiters_), semaphore_(s) {}
        ~acquire_awaitable() {
            if (untaken()) {
                semaphore_.release();
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            return suspend(h, env, [this] { return semaphore_.take(); });
        }
        [[nodiscard]] result<void> await_resume() const noexcept {
            return granted() ? result<void>() : std::errc::operation_canceled;
        }

    private:
        template <class... Cases>
        friend class select_awaitable;
        bool take(wait_list::granted&) noexcept { return semaphore_.take(); }

        semaphore& semaphore_;
    };

    /// Awaits a permit, which the caller then holds. Errors: operation_canceled, also for a stop from before.
    /// Cancel-safe: a cancelled wait holds none.
    acquire_awaitable acquire() noexcept { return acquire_awaitable(*this); }

    /// @return whether there was one
    [[nodiscard]] bool try_acquire() noexcept {
        std::scoped_lock const locked(lock_);
        return take();
    }

    /// Gives permits back, or adds some.
    void release(std::size_t permits = 1) noexcept;

    /// How many could be had now.
    [[nodiscard]] std::size_t available() const noexcept {
        std::scoped_lock const locked(lock_);
        return permits_;
    }

private:
    friend class mutex;
    semaphore(std::size_t permits, char const* what) noexcept
        : waiters_(lock_, what), permits_(permits) {}

    bool take() noexcept {
        bool const has = permits_ != 0;
        permits_ -= has ? 1 : 0;
        return has;
    }

    mutable brief_lock lock_;
    wait_list waiters_;
    std::size_t permits_;
};

}  // namespace plumb
