// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>
#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/resumption.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/exec/strand_queue.hpp>

#include <coroutine>
#include <utility>

namespace plumb {

/// An executor over another that never runs two items at once, whichever threads the other has, and runs them in the
/// order in which they were posted. `async_run(strand(pool.get_executor()), f())`: all of `f` is serialised.
///
/// A coroutine is inside while it runs; where it is suspended it has left, and others run. A dispatch runs inline only
/// inside this very strand. After 64 items the strand is posted to the other executor again, behind what is queued
/// there. Copies are equal and share the queue, which lives as long as one of them or anything in it; what it runs on
/// must outlive that.
/// Where the other executor ends with work in the strand, that work is dropped.
/// Threads: any. Allocates: when it is made, from the pool, and for `dispatch` from outside. Source: coroutine-first
/// i/o 3.2.
template <executor E>
class strand {
public:
    /// Terminates where there is no memory.
    explicit strand(E inner) : state_(strand_queue::make<state>(std::move(inner))) {}
    strand(strand const& other) noexcept : state_(other.state_) { state_->retain(); }
    strand& operator=(strand const& other) noexcept {
        other.state_->retain();
        state_->release();
        state_ = other.state_;
        return *this;
    }
    ~strand() { state_->release(); }

    /// @return `h` when called from inside, else `noop_coroutine` after it was posted
    [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
        if (running_in_this_thread()) {
            return h;
        }
        post(&make_resumption(h));
        return std::noop_coroutine();
    }
    void post(work* w) const {
        if (state_->push(*w)) {
            state_->inner.post(state_);
        }
    }

    [[nodiscard]] bool running_in_this_thread() const noexcept {
        return state_->running_in_this_thread();
    }
    /// What it runs on.
    [[nodiscard]] E const& inner() const noexcept { return state_->inner; }
    [[nodiscard]] root_list* roots() const noexcept { return executor_ref(inner()).roots(); }
    void work_started() const noexcept { executor_ref(inner()).work_started(); }
    void work_finished() const noexcept { executor_ref(inner()).work_finished(); }

    friend bool operator==(strand const& a, strand const& b) noexcept {
        return a.state_ == b.state_;
    }

private:
    struct state : strand_queue {
        explicit state(E e) noexcept
            : strand_queue(&state::run, &state::destroy), inner(std::move(e)) {}

        static void run(owned_work& self, fate f) noexcept {
            auto& s = static_cast<state&>(self);
            if (f == fate::dropped) {
                s.drop_all();
            } else if (s.run_batch()) {
                post_last(s.inner, &s);
                return;
            }
            s.release();
        }
        static void destroy(strand_queue& self) noexcept { unmake(static_cast<state&>(self)); }

        E inner;
    };

    state* state_;
};

}  // namespace plumb
