// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/executor.hpp>
#include <plumb/exec/root_list.hpp>

namespace plumb {

/// A type-erased reference to an executor, which must outlive it. Two pointers; may be empty. Of an executor that
/// has `lasting()` it refers to what that gives: then only the context must outlive it.
///
/// Equality compares the static table of the executor's type first, then null, then the values, so an executor
/// that wraps another at its first byte never equals it.
/// Threads: as the executor's. Allocates: never. Source: coroutine-first i/o 3.1.
class executor_ref {
public:
    constexpr executor_ref() noexcept = default;

    template <class E>
        requires(!std::same_as<E, executor_ref> &&
                 requires(E const& e, std::coroutine_handle<> h) { e.dispatch(h); })
    constexpr executor_ref(E const& target) noexcept
        : table_(is_concurrent(target) ? &table_for<E, true> : &table_for<E, false>),
          target_(lasting(&target)) {
        static_assert(executor<E>);
    }

    [[nodiscard]] constexpr explicit operator bool() const noexcept { return table_ != nullptr; }

    /// @return the coroutine to resume next: `h`, or `noop_coroutine` after it was posted. Not on an empty one.
    [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
        PLUMB_ASSERT(table_ != nullptr);
        return table_->dispatch(target_, h);
    }

    /// Queues `w` to run later. Not on an empty one.
    void post(work* w) const {
        PLUMB_ASSERT(table_ != nullptr);
        table_->post(target_, w);
    }

    /// Whether the caller is inside the executor now; false where it can't tell, and for an empty one.
    [[nodiscard]] bool running_in_this_thread() const noexcept {
        return table_ != nullptr && table_->running_in_this_thread(target_);
    }

    /// Whether several threads may be inside the executor at once; false for an empty one.
    [[nodiscard]] bool concurrent() const noexcept {
        return table_ != nullptr && table_->concurrent;
    }

    /// The list of coroutines that nobody awaits, of the context behind the executor; null where it keeps none.
    [[nodiscard]] root_list* roots() const noexcept {
        return table_ != nullptr ? table_->roots(target_) : nullptr;
    }

    /// Something will post later, for which the context behind the executor goes on running; or it has posted.
    void work_started() const noexcept { count_work(true); }
    void work_finished() const noexcept { count_work(false); }

    friend bool operator==(executor_ref const& a, executor_ref const& b) noexcept {
        if (a.table_ != b.table_) {
            return false;
        }
        return a.target_ == b.target_ ||
               (a.table_ != nullptr && a.table_->equal(a.target_, b.target_));
    }

private:
    struct table {
        std::coroutine_handle<> (*dispatch)(void const*, std::coroutine_handle<>);
        void (*post)(void const*, work*);
        bool (*running_in_this_thread)(void const*) noexcept;
        root_list* (*roots)(void const*) noexcept;
        bool (*equal)(void const*, void const*) noexcept;
        void (*count_work)(void const*, bool started) noexcept;
        bool concurrent;
    };

    void count_work(bool started) const noexcept {
        if (table_ != nullptr) {
            table_->count_work(target_, started);
        }
    }

    template <class E>
    static constexpr E const* lasting(E const* target) noexcept {
        if constexpr (requires {
                          { target->lasting() } -> std::same_as<E const&>;
                      }) {
            return &target->lasting();
        } else {
            return target;
        }
    }

    template <class E>
    static root_list* roots_of(void const* target) noexcept {
        if constexpr (requires(E const& e) { static_cast<root_list*>(e.roots()); }) {
            return static_cast<E const*>(target)->roots();
        } else {
            return nullptr;
        }
    }

    template <class E>
    static bool inside(void const* target) noexcept {
        if constexpr (requires(E const& e) { bool(e.running_in_this_thread()); }) {
            return static_cast<E const*>(target)->running_in_this_thread();
        } else {
            return false;
        }
    }

    template <class E>
    static void count_work_of(void const* target, bool started) noexcept {
        if constexpr (requires(E const& e) {
                          e.work_started();
                          e.work_finished();
                      }) {
            auto const& e = *static_cast<E const*>(target);
            started ? e.work_started() : e.work_finished();
        }
    }

    template <class E, bool Concurrent>
    static constexpr table table_for{
        [](void const* e, std::coroutine_handle<> h) -> std::coroutine_handle<> {
            return static_cast<E const*>(e)->dispatch(h);
        },
        [](void const* e, work* w) { static_cast<E const*>(e)->post(w); },
        &inside<E>,
        &roots_of<E>,
        [](void const* a, void const* b) noexcept -> bool {
            return *static_cast<E const*>(a) == *static_cast<E const*>(b);
        },
        &count_work_of<E>,
        Concurrent,
    };

    table const* table_ = nullptr;
    void const* target_ = nullptr;
};

}  // namespace plumb
