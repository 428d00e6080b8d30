// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/context_roots.hpp>
#include <plumb/exec/executor.hpp>
#include <plumb/exec/work_queue.hpp>

#include <coroutine>
#include <cstddef>

namespace plumb {

/// A context without i/o and without a thread: it runs what was posted when it is told to, one item after another in
/// the order of the posts, so that each step of a program is the caller's. For tests, and for loops of others.
///
/// Destroying it drops what is queued and destroys the coroutines that were launched on it and have not ended.
/// Threads: one at a time. Allocates: for `dispatch` from outside, from the pool.
class manual_executor {
public:
    /// Names the context; copies are equal.
    class executor_type {
    public:
        /// @return `h` when called from inside, else `noop_coroutine` after it was posted
        [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const noexcept;
        void post(work* w) const noexcept { context_->post(*w); }
        [[nodiscard]] bool running_in_this_thread() const noexcept { return context_->running_; }
        [[nodiscard]] executor_type const& lasting() const noexcept { return context_->executor_; }
        [[nodiscard]] root_list* roots() const noexcept { return &context_->roots_; }
        friend bool operator==(executor_type const&, executor_type const&) noexcept = default;

    private:
        friend manual_executor;
        explicit executor_type(manual_executor& c) noexcept : context_(&c) {}
        manual_executor* context_;
    };

    manual_executor() noexcept : executor_(*this) {}
    ~manual_executor();
    manual_executor(manual_executor const&) = delete;
    manual_executor& operator=(manual_executor const&) = delete;

    [[nodiscard]] executor_type const& get_executor() const noexcept { return executor_; }
    [[nodiscard]] root_list& roots() noexcept { return roots_; }

    /// Runs the oldest item. @return false where nothing is queued
    bool run_one() noexcept;
    /// Runs until nothing is queued. @return how many items it ran
    std::size_t run() noexcept;
    /// How many items are queued.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

private:
    void post(work& w) noexcept {
        queue_.push(w);
        ++count_;
    }
    work* pop() noexcept;

    executor_type executor_;
    work_queue queue_;
    std::size_t count_ = 0;
    context_roots roots_{"manual_executor"};
    bool running_ = false;
};

static_assert(executor<manual_executor::executor_type>);

}  // namespace plumb
