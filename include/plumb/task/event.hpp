// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>
#include <plumb/task/wait_list.hpp>

#include <coroutine>
#include <cstdint>
#include <mutex>
#include <system_error>

namespace plumb {

/// Something that happens, and coroutines wait for: `(co_await happened.wait()).value();`.
///
/// Manual: once set it stays so until `reset`, and everybody passes. Automatic: each `set` lets one coroutine pass, the
/// one that waits longest or the next that comes; setting it twice before is setting it once.
///
/// State: `set_`, and who waits (never both, of an automatic one), under `lock_`; of the waiters see `wait_list.hpp`.
/// Threads: any. Allocates: never.
class event {
public:
    enum class reset_by : bool { hand, waiter };

    /// @param how  `hand` makes a manual event, `waiter` an automatic one
    explicit event(reset_by how = reset_by::hand, bool set = false) noexcept
        : set_(set), automatic_(how == reset_by::waiter) {}

    /// It outlives those that wait for it until they were resumed.
    void set() noexcept;
    void reset() noexcept;
    [[nodiscard]] bool is_set() const noexcept;

    class [[nodiscard]] wait_awaitable : private waiter {
    public:
        explicit wait_awaitable(event& e) noexcept : waiter(e.waiters_), event_(e) {}
        ~wait_awaitable() {
            if (untaken() && event_.automatic_) {
                event_.set();
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            return suspend(h, env, [this] { return event_.pass(); });
        }
        [[nodiscard]] result<void> await_resume() const noexcept {
            return granted() ? result<void>() : std::errc::operation_canceled;
        }

    private:
        template <class... Cases>
        friend class select_awaitable;
        bool take(wait_list::granted&) noexcept { return event_.pass(); }

        event& event_;
    };

    /// Awaits that it is set. Errors: operation_canceled, also for a stop from before. Cancel-safe: a cancelled wait
    /// takes no `set` from others.
    wait_awaitable wait() noexcept { return wait_awaitable(*this); }

private:
    bool pass() noexcept {
        bool const was = set_;
        set_ = set_ && !automatic_;
        return was;
    }

    mutable brief_lock lock_;
    wait_list waiters_{lock_, "event"};
    bool set_;
    bool const automatic_;
};

}  // namespace plumb
