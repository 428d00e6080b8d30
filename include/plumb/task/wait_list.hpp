// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/brief_lock.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/task/async_frame.hpp>
#include <plumb/task/suspension.hpp>

#include <atomic>
#include <bit>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <span>
#include <utility>

// The one mechanism by which coroutines wait for one another. A primitive has a `brief_lock` and one or more lists of
// waiters; a waiter is part of the awaitable in the coroutine's frame. `select` makes several wait as one: one of them
// leads and has the coroutine, and each stands in the list of its own primitive.
//
// States of a waiter that leads, as one that waits alone does (`phase_`):
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
// Who gives holds the lock of one list; every other transition is made under the locks of all lists, which are taken in
// the order of their addresses. So two of 7 exclude one another by an exchange, and all else by a lock: what was granted
// is never cancelled, and a cancelled waiter was given nothing. Those of a group that were not granted stay in their
// lists until 9, and who comes upon one there takes it out and passes on.
//
// Of a context that ends nobody goes on: what is granted to its coroutines meanwhile, by those that are destroyed before
// them, is dropped at once.
//
// Owners: the coroutine in idle and entering; the list while it is waiting; once it was posted, the executor's queue.
// A coroutine that is destroyed where it waits takes the waiter out of the list. One that is destroyed after its executor
// has dropped what was granted gives it back (`untaken`).
namespace plumb {

class wait_list;
template <class... Cases>
class select_awaitable;

/// A coroutine in a `wait_list`, or about to be.
/// Threads: each function says. Allocates: never.
class waiter : private owned_work, private stop_callback_node, public suspension {
public:
    waiter(waiter const&) = delete;
    waiter& operator=(waiter const&) = delete;

    /// Where it waits; where it is one of several, these are others.
    [[nodiscard]] wait_list const& list() const noexcept { return *list_; }
    [[nodiscard]] bool alone() const noexcept { return next_case_ == nullptr; }

protected:
    explicit waiter(wait_list& list) noexcept
        : owned_work(&waiter::end_posted),
          stop_callback_node(&waiter::on_stop),
          suspension(form::primitive),
          list_(&list) {}
    ~waiter() {
        if (suspended_) {
            withdraw();
        }
    }

    /// Suspends `h` in the list unless `take`, which is called under the lock, gets what is wanted at once.
    /// @return whether it is suspended; if so, on an executor of several threads it may have been resumed by now
    template <std::predicate Take>
    bool suspend(awaiting h, io_env const& env, Take take) {
        return suspend_for_one(h, env, [&]() -> waiter* { return take() ? this : nullptr; });
    }

    /// When it is resumed: whether it got what it wanted; else it was cancelled.
    [[nodiscard]] bool granted() const noexcept { return granted_; }

    /// In the destructor of what derives from it: takes it out of the list where it still waits.
    /// @return whether it was granted something that nobody will take
    bool untaken() noexcept {
        if (suspended_) {
            withdraw();
        }
        return granted_ && dropped_;
    }

private:
    friend wait_list;
    template <class... Cases>
    friend class select_awaitable;
    enum class phase : std::uint8_t { idle, entering, waiting, granted, cancelled };

    /// Makes these wait as one. @return the one that leads. The order of `all` is lost
    static waiter& join(std::span<waiter*> all) noexcept;
    /// Of the one that leads: withdraws them all, and lets each know what became of it.
    void part() noexcept;

    /// As `suspend`, of the one that leads; `take` gives the one that got what it wants, or null.
    template <std::invocable Take>
    bool suspend_for_one(awaiting h, io_env const& env, Take take);

    /// Holds the locks of all lists. Whoever is waiting may be resumed as soon as the last is left, and not before.
    class locks {
    public:
        explicit locks(waiter& lead) noexcept : first_(&lead) {
            for (waiter* w = first_; w != nullptr; w = w->next_case_) {
                if (w->last_of_its_lock()) {
                    w->lock().lock();
                }
            }
        }
        locks(locks const&) = delete;
        locks& operator=(locks const&) = delete;
        ~locks() {
            for (waiter* w = first_; w != nullptr;) {
                waiter* const next = w->next_case_;
                if (w->last_of_its_lock()) {
                    w->lock().unlock();
                }
                w = next;
            }
        }

    private:
        waiter* first_;
    };

    [[nodiscard]] inline brief_lock& lock() const noexcept;
    [[nodiscard]] bool last_of_its_lock() const noexcept {
        return next_case_ == nullptr || &next_case_->lock() != &lock();
    }

    // Under all locks.
    [[nodiscard]] phase now() const noexcept { return phase_.load(std::memory_order_relaxed); }
    void become(phase p) noexcept { phase_.store(p, std::memory_order_relaxed); }
    inline void enter_lists() noexcept;
    void leave_lists() noexcept;

    void post() noexcept;
    void withdraw() noexcept;
    static void on_stop(stop_callback_link& self) noexcept;
    static void end_posted(owned_work& self, fate f) noexcept;

    wait_list* list_;
    waiter* previous_ = nullptr;
    waiter* next_ = nullptr;  // also of those that were taken out to be posted
    waiter* lead_ = this;     // of the group
    waiter* next_case_ =
        nullptr;            // of the group, in the order of their locks, the first of which leads
    bool listed_ = false;   // under the list's lock
    bool granted_ = false;  // this one

    // Of the one that leads.
    std::atomic<phase> phase_{phase::idle};
    bool dropped_ = false;  // by the executor's queue
    io_env const* env_ = nullptr;
    std::coroutine_handle<> suspended_;
    async_frame* frame_ = nullptr;  // of that
};

/// The waiters of a primitive, first come, first served. Threads: under the primitive's lock. Allocates: never.
class wait_list {
public:
    /// @param lock  the primitive's first member
    /// @param what  its name
    wait_list(brief_lock& lock, char const* what) noexcept : lock_(lock), what_(what) {}
    wait_list(wait_list const&) = delete;
    wait_list& operator=(wait_list const&) = delete;
    ~wait_list() {
        require(first_ == nullptr,
                "something that coroutines wait for was destroyed while one of them waits");
    }

    // Of a list that is in no `select`, where all that are in it wait.
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// What is waited for: the primitive's name and address.
    [[nodiscard]] char const* what() const noexcept { return what_; }
    [[nodiscard]] void const* of() const noexcept { return &lock_; }
    /// Who has it, of what one at a time has: where it awaited that. Not under the lock.
    void held_since(std::source_location where) noexcept {
        held_since_.store(std::bit_cast<void const*>(where), std::memory_order_relaxed);
    }
    [[nodiscard]] std::source_location held_since() const noexcept {
        return std::bit_cast<std::source_location>(held_since_.load(std::memory_order_relaxed));
    }
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

    /// Takes the first out, which gets what it waits for. @return that, or null where none waits
    waiter* grant_first(granted& to) noexcept;
    void grant_all(granted& to) noexcept {
        while (grant_first(to) != nullptr) {
        }
    }

    /// A number below `limit` that follows no pattern, and is the same in each run of a program.
    [[nodiscard]] std::size_t draw(std::size_t limit) noexcept {
        draw_ = draw_ * 1664525 + 1013904223;
        return (draw_ >> 16) % limit;
    }

private:
    friend waiter;

    void push(waiter& w) noexcept;
    void remove(waiter& w) noexcept;

    brief_lock& lock_;
    char const* what_;
    std::atomic<void const*> held_since_{nullptr};
    waiter* first_ = nullptr;
    waiter* last_ = nullptr;
    std::size_t size_ = 0;
    std::uint32_t draw_ = 0;
};

brief_lock& waiter::lock() const noexcept { return list_->lock_; }

void waiter::enter_lists() noexcept {
    become(phase::waiting);
    if (frame_ != nullptr) {
        frame_->awaits(static_cast<suspension const&>(*this));
    }
    for (waiter* w = this; w != nullptr; w = w->next_case_) {
        w->list_->push(*w);
    }
}

template <std::invocable Take>
bool waiter::suspend_for_one(awaiting h, io_env const& env, Take take) {
    if (env.stop.stop_requested()) {
        become(phase::cancelled);
        return false;
    }
    env_ = &env;
    auto const taken = [&] {
        waiter* const one = take();
        if (one != nullptr) {
            one->granted_ = true;
            become(phase::granted);
        }
        return one != nullptr;
    };
    {
        locks const locked(*this);
        if (taken()) {
            return false;
        }
        suspended_ = h;
        frame_ = h.frame();
        if (!env.stop.stop_possible()) {
            enter_lists();
            return true;
        }
        become(phase::entering);
    }
    env.stop.call_on_stop(*this);
    {
        locks const locked(*this);
        if (now() != phase::cancelled && !taken()) {
            enter_lists();
            return true;
        }
    }
    unregister();
    suspended_ = nullptr;
    return false;
}

}  // namespace plumb
