// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>
#include <plumb/task/wait_list.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>

namespace plumb {

/// One coroutine that writes, or any number that read: `auto held = (co_await m.lock_shared()).value();`. Who waits gets
/// it in the order of coming, readers that stand beside one another together: so neither side starves.
///
/// State, under `lock_`; of the waiters see `wait_list.hpp`: free; held by `readers_`; or `written_`. The first who waits
/// is one that a holder excludes. A waiter that is cancelled or destroyed lets in who waited behind it.
/// Threads: any. Allocates: never.
class shared_mutex {
public:
    enum class access : std::uint8_t { read, write };

    /// Holds a shared_mutex while it lives. Move-only.
    class [[nodiscard]] held {
    public:
        held() noexcept = default;
        held(held&& other) noexcept : of_(std::exchange(other.of_, nullptr)), how_(other.how_) {}
        held& operator=(held&& other) noexcept {
            std::swap(of_, other.of_);
            std::swap(how_, other.how_);
            return *this;
        }
        ~held() { unlock(); }

        [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }
        /// Before its end; nothing where it holds none.
        void unlock() noexcept {
            if (shared_mutex* const m = std::exchange(of_, nullptr)) {
                m->give_back(how_);
            }
        }

    private:
        friend shared_mutex;
        held(shared_mutex& m, access how) noexcept : of_(&m), how_(how) {}
        shared_mutex* of_ = nullptr;
        access how_ = access::read;
    };

    class [[nodiscard]] lock_awaitable : private waiter {
    public:
        lock_awaitable(shared_mutex& m, access how) noexcept
            : waiter(m.waiters_), mutex_(m), how_(how) {}
        ~lock_awaitable() {
            if (untaken()) {
                mutex_.give_back(how_);
            } else if (!granted()) {
                mutex_.let_in();
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            return suspend(h, env, [this] { return mutex_.waiters_.empty() && mutex_.take(how_); });
        }
        [[nodiscard]] result<held> await_resume() const noexcept {
            return granted() ? result<held>(held(mutex_, how_)) : std::errc::operation_canceled;
        }

    private:
        friend shared_mutex;
        shared_mutex& mutex_;
        access how_;
    };

    /// Await the mutex, to write or to read. Not recursive. Errors: operation_canceled, also for a stop from before.
    /// Cancel-safe: a cancelled wait doesn't hold it.
    lock_awaitable lock() noexcept { return {*this, access::write}; }
    lock_awaitable lock_shared() noexcept { return {*this, access::read}; }

    /// @return one that holds nothing where it would have to wait
    held try_lock() noexcept { return try_take(access::write); }
    held try_lock_shared() noexcept { return try_take(access::read); }

private:
    bool take(access how) noexcept;
    void let_in(wait_list::granted& to) noexcept;
    void let_in() noexcept;
    void give_back(access how) noexcept;
    held try_take(access how) noexcept;

    brief_lock lock_;
    wait_list waiters_{lock_, "shared_mutex"};
    std::size_t readers_ = 0;
    bool written_ = false;
};

}  // namespace plumb
