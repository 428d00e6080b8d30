// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/stop_token.hpp>

#include <coroutine>
#include <utility>

namespace plumb::aio {

/// What one coroutine of a loop waits for until another notifies it, or until its stop token is stopped: it looks for
/// itself why it was woken. Resumes through the executor's queue, never inline. Threads: the loop's.
///
/// States: quiet -> awaited -> posted -> quiet. A waiter that is destroyed leaves awaited; a posted notification then
/// wakes nobody. It outlives posted: an executor that ends drops it from its queue.
class notification : private owned_work, private stop_callback_node {
public:
    notification() noexcept
        : owned_work(&notification::end_posted), stop_callback_node(&notification::on_stop) {}
    ~notification() { require(!posted_, "a notification was destroyed on its way to its waiter"); }

    void notify() noexcept {
        if (waiting_ && !posted_) {
            posted_ = true;
            unregister();
            env_->executor.post(this);
        }
    }

    /// Waits for a notification or a stop request.
    auto wait() noexcept { return awaitable(*this, true); }
    /// Waits for a notification alone.
    auto wait_regardless() noexcept { return awaitable(*this, false); }

private:
    class awaitable {
    public:
        awaitable(notification& n, bool heeds_stop) noexcept : of_(n), heeds_stop_(heeds_stop) {}
        awaitable(awaitable const&) = delete;
        awaitable& operator=(awaitable const&) = delete;
        ~awaitable() {
            if (waiting_ && of_.waiting_ == waiting_) {
                of_.unregister();
                of_.waiting_ = nullptr;
            }
        }

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> h, io_env const& env) noexcept {
            require(!of_.waiting_, "a notification has one waiter");
            if (heeds_stop_ && env.stop.stop_requested()) {
                return false;
            }
            waiting_ = h;
            of_.waiting_ = h;
            of_.env_ = &env;
            if (heeds_stop_) {
                env.stop.call_on_stop(of_);
            }
            return true;
        }
        void await_resume() const noexcept {}

    private:
        notification& of_;
        std::coroutine_handle<> waiting_;
        bool heeds_stop_;
    };

    static void on_stop(stop_callback_link& node) noexcept {
        static_cast<notification&>(node).notify();
    }
    static void end_posted(owned_work& item, fate f) noexcept {
        auto& self = static_cast<notification&>(item);
        self.posted_ = false;
        if (f == fate::run && self.waiting_) {
            std::exchange(self.waiting_, nullptr).resume();
        }
    }

    std::coroutine_handle<> waiting_;
    io_env const* env_ = nullptr;
    bool posted_ = false;
};

}  // namespace plumb::aio
