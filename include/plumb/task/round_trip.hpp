// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/promise_base.hpp>

#include <concepts>
#include <coroutine>
#include <utility>

namespace plumb {

/// Takes control from one executor to another and back, with one node, which is in at most one queue at a time.
/// Counts as outside work at home meanwhile, so that home doesn't end for lack of work.
///
/// States: home -> away (`depart`) -> on its way back (a coroutine that it is the hook of ends there) -> home; or
/// home -> away (`visit`) -> on its way back, at once -> home.
/// Threads: `depart`, `visit` and the destructor at home, the hook there. Allocates: never.
class round_trip : private work, public end_hook, public suspension {
public:
    /// @param home  must outlive it
    explicit round_trip(executor_ref home) noexcept
        : work(&round_trip::arrive),
          end_hook(&round_trip::go_home),
          suspension(form::elsewhere),
          home_(home) {}
    round_trip(round_trip const&) = delete;
    round_trip& operator=(round_trip const&) = delete;
    ~round_trip() {
        if (out_) {
            home_.work_finished();
        }
    }

    /// Resumes a coroutine there, later, that was launched with this as its hook.
    template <class E, std::derived_from<promise_base> Promise>
    void depart(E const& there, std::coroutine_handle<Promise> launched) {
        away_ = &launched.promise();
        if (away_->awaiter() != nullptr) {
            away_->awaiter()->awaits(static_cast<suspension const&>(*this));
        }
        leave_for(there, launched);
    }

    /// Resumes a coroutine here, later, behind everything that is queued there.
    template <class E>
    void visit(E const& there, std::coroutine_handle<> h) {
        leave_for(there, h);
    }

    /// The coroutine that is not at home, or null. Another thread may be running it.
    [[nodiscard]] async_frame const* away() const noexcept { return away_; }

private:
    template <class E>
    void leave_for(E const& there, std::coroutine_handle<> next) {
        out_ = true;
        home_.work_started();
        next_ = next;
        there.post(this);  // the last touch
    }

    /// Resumes the continuation at home.
    static std::coroutine_handle<> go_home(end_hook& hook, promise_base&, bool) noexcept {
        auto& self = static_cast<round_trip&>(hook);
        self.returning_ = true;
        if (self.home_.running_in_this_thread()) {
            return self.come_home();
        }
        self.home_.post(&self);  // the last touch
        return std::noop_coroutine();
    }

    std::coroutine_handle<> come_home() noexcept {
        if (away_ != nullptr) {
            next_ = std::exchange(away_, nullptr)->give_back();
        }
        returning_ = false;
        out_ = false;
        home_.work_finished();
        return next_;
    }

    static void arrive(work& w) noexcept {
        auto& self = static_cast<round_trip&>(w);
        if (self.returning_) {
            self.come_home().resume();
        } else if (self.away_ != nullptr) {
            self.next_.resume();
        } else {
            self.returning_ = true;
            self.home_.post(&self);  // the last touch
        }
    }

    executor_ref home_;
    std::coroutine_handle<> next_;
    promise_base* away_ = nullptr;  // changed at home
    bool out_ = false;              // touched at home: it counts as work there
    bool returning_ = false;        // touched by whoever has the control
};

}  // namespace plumb
