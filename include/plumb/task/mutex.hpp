// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>
#include <plumb/task/semaphore.hpp>

#include <coroutine>
#include <source_location>
#include <system_error>
#include <utility>

namespace plumb {

/// At most one coroutine at a time: `auto held = (co_await m.lock()).value();`, until `held` goes. It may be held across
/// suspensions, and be unlocked on another thread. Who waits gets it in the order of coming, and never blocks a thread.
///
/// State: a `semaphore` with one permit; unlocking hands it to the first waiter.
/// Threads: any. Allocates: never.
class mutex {
public:
    /// Holds a mutex while it lives. Move-only.
    class [[nodiscard]] held {
    public:
        held() noexcept = default;
        held(held&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        held& operator=(held&& other) noexcept {
            std::swap(of_, other.of_);
            return *this;
        }
        ~held() { unlock(); }

        [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }
        /// What it holds, or null.
        [[nodiscard]] mutex* of() const noexcept { return of_; }
        /// Before its end; nothing where it holds none.
        void unlock() noexcept {
            if (mutex* const m = std::exchange(of_, nullptr)) {
                m->permit_.release();
            }
        }

    private:
        friend mutex;
        held(mutex& m, std::source_location where) noexcept : of_(&m) {
            m.permit_.waiters_.held_since(where);
        }
        mutex* of_ = nullptr;
    };

    class [[nodiscard]] lock_awaitable {
    public:
        explicit lock_awaitable(mutex& m) noexcept : mutex_(m), permit_(m.permit_) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            if (h.frame() != nullptr) {
                where_ = h.frame()->location();
            }
            return permit_.await_suspend(h, env);
        }
        [[nodiscard]] result<held> await_resume() const noexcept {
            return permit_.await_resume() ? result<held>(held(mutex_, where_))
                                          : std::errc::operation_canceled;
        }

    private:
        mutex& mutex_;
        semaphore::acquire_awaitable permit_;
        std::source_location where_;
    };

    /// Awaits the mutex. Not recursive. Errors: operation_canceled, also for a stop from before. Cancel-safe: a
    /// cancelled wait doesn't hold it.
    lock_awaitable lock() noexcept { return lock_awaitable(*this); }

    /// @return one that holds nothing where somebody else has it
    held try_lock(std::source_location where = std::source_location::current()) noexcept {
        return permit_.try_acquire() ? held(*this, where) : held();
    }

private:
    semaphore permit_{1, "mutex"};
};

}  // namespace plumb
