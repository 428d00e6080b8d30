// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/brief_lock.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/stop_token.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

// The one mechanism by which coroutines wait for one another. A primitive has a `brief_lock` and one or more lists of
// waiters; a waiter is part of the awaitable in the coroutine's frame.
//
// States of a waiter (`phase_`, under the primitive's lock from `entering` to `granted` or `cancelled`):
//
//   1. idle      -> granted    what it wants was there: it doesn't suspend
//   2. idle      -> cancelled  a stop was requested before the start
//   3. idle      -> entering   it registers with the stop token, before anybody can resume it on another thread
//   4. entering  -> granted    what it wants was there meanwhile: it doesn't suspend
//   5. entering  -> cancelled  the stop came meanwhile
//   6. entering  -> waiting    it is in the list
//   7. waiting   -> granted    whoever gives takes it out of the list, and posts it to its executor
//   8. waiting   -> cancelled  the stop takes it out of the list, and posts it
//   9. granted or cancelled, posted -> idle: its executor runs it, it leaves the stop token, the coroutine goes on
//
// Owners: the coroutine in idle and entering; the list while it is waiting; once it was posted, the executor's queue.
// 7 and 8 exclude one another under the lock, so that what was granted is never cancelled and a cancelled waiter was
// given nothing. A coroutine that is destroyed where it waits takes the waiter out of the list. One that is destroyed
// after its executor has dropped what was granted gives it back (`untaken`).
namespace plumb {

class wait_list;

/// A coroutine in a `wait_list`, or about to be.
/// Threads: each function says. Allocates: never.
class waiter : private owned_work, private stop_callback_node {
public:
    waiter(waiter const&) = delete;
    waiter& operator=(waiter const&) = delete;

protected:
    waiter() noexcept : owned_work(&waiter::end_posted), stop_callback_node(&waiter::on_stop) {}
    ~waiter() {
        if (suspended_) {
            withdraw();
        }
    }

    /// Suspends `h` in `list` unless `take`, which is called under the lock, gets what is wanted at once.
    /// @return whether it is suspended; if so, on an executor of several threads it may have been resumed by now
    template <std::predicate Take>
    bool suspend(wait_list& list, std::coroutine_handle<> h, io_env const& env, Take take);

    /// When it is resumed: whether it got what it wanted; else it was cancelled.
    [[nodiscard]] bool granted() const noexcept { return phase_ == phase::granted; }

    /// In the destructor of what derives from it: takes it out of the list where it still waits.
    /// @return whether it was granted something that nobody will take
    bool untaken() noexcept {
        if (!suspended_) {
            return false;
        }
        withdraw();
        return granted();
    }

private:
    friend wait_list;
    enum class phase : std::uint8_t { idle, entering, waiting, granted, cancelled };

    void withdraw() noexcept;
    static void on_stop(stop_callback_link& self) noexcept;
    static void end_posted(owned_work& self, fate f) noexcept;

    wait_list* list_ = nullptr;
    waiter* previous_ = nullptr;
    waiter* next_ = nullptr;  // also of those that were taken out to be posted
    io_env const* env_ = nullptr;
    std::coroutine_handle<> suspended_;
    phase phase_ = phase::idle;
    bool dropped_ = false;  // by the executor's queue
};

/// The waiters of a primitive, first come, first served. Threads: under the primitive's lock. Allocates: never.
class wait_list {
public:
    /// @param lock  the primitive's
    explicit wait_list(brief_lock& lock) noexcept : lock_(lock) {}
    wait_list(wait_list const&) = delete;
    wait_list& operator=(wait_list const&) = delete;
    ~wait_list() {
        require(first_ == nullptr,
                "something that coroutines wait for was destroyed while one of them waits");
    }

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    /// How many wait.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// The one that waits longest, or null.
    [[nodiscard]] waiter* first() const noexcept { return first_; }

    /// Those that were granted something under the lock, to be posted when it was left.
    class granted {
    public:
        granted() noexcept = default;
        granted(granted const&) = delete;
        granted& operator=(granted const&) = delete;
        ~granted() { post(); }

    private:
        friend wait_list;
        void post() noexcept;
        waiter* first_ = nullptr;
        waiter* last_ = nullptr;
    };

    /// Takes the first out, which gets what it waits for. Not of an empty list.
    void grant_first(granted& to) noexcept;
    void grant_all(granted& to) noexcept {
        while (!empty()) {
            grant_first(to);
        }
    }

private:
    friend waiter;

    void push(waiter& w) noexcept;
    void remove(waiter& w) noexcept;

    brief_lock& lock_;
    waiter* first_ = nullptr;
    waiter* last_ = nullptr;
    std::size_t size_ = 0;
};

template <std::predicate Take>
bool waiter::suspend(wait_list& list, std::coroutine_handle<> h, io_env const& env, Take take) {
    if (env.stop.stop_requested()) {
        phase_ = phase::cancelled;
        return false;
    }
    list_ = &list;
    env_ = &env;
    {
        std::scoped_lock const locked(list.lock_);
        if (take()) {
            phase_ = phase::granted;
            return false;
        }
        suspended_ = h;
        if (!env.stop.stop_possible()) {
            phase_ = phase::waiting;
            list.push(*this);
            return true;
        }
        phase_ = phase::entering;
    }
    env.stop.call_on_stop(*this);
    {
        std::scoped_lock const locked(list.lock_);
        if (phase_ != phase::cancelled) {
            if (!take()) {
                phase_ = phase::waiting;
                list.push(*this);
                return true;
            }
            phase_ = phase::granted;
        }
    }
    unregister();
    suspended_ = nullptr;
    return false;
}

}  // namespace plumb
