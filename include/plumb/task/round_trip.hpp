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
/// States: home -> away (`depart`) -> on its way back (a coroutine that it is the hook of ends there) -> home.
/// Threads: `depart` and the destructor at home, the hook there. Allocates: never.
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
        if (away_ != nullptr) {
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
        home_.work_started();
        next_ = launched;
        there.post(this);  // the last touch
    }

    /// The coroutine that is not at home, or null. Another thread may be running it.
    [[nodiscard]] async_frame const* away() const noexcept { return away_; }

private:
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
        next_ = std::exchange(away_, nullptr)->give_back();
        returning_ = false;
        home_.work_finished();
        return next_;
    }

    static void arrive(work& w) noexcept {
        auto& self = static_cast<round_trip&>(w);
        (self.returning_ ? self.come_home() : self.next_).resume();
    }

    executor_ref home_;
    std::coroutine_handle<> next_;
    promise_base* away_ = nullptr;  // touched at home
    bool returning_ = false;        // touched by whoever has the control
};

}  // namespace plumb
