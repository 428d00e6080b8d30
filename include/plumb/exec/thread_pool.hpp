// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>
#include <plumb/exec/root_list.hpp>

#include <coroutine>
#include <memory>

namespace plumb {

/// A fixed number of threads that run what is posted. They do no i/o and keep no time: for these there is `run_on` on an
/// `io_context`.
///
/// What is posted from elsewhere is begun in the order of the posts. What an item posts goes to the thread that it runs
/// on, which takes the newest of those first: so a fork is followed into its depth, and few things are begun at
/// once. Whoever is idle steals the oldest of another's, so that nothing is stuck behind a busy thread. Nothing waits forever
/// either: each thread also takes what was posted from elsewhere, and its own oldest, every so often; and what posts
/// itself again and again gives way after 16 times. For an order of one's own there is `strand`.
///
/// The end, with work queued: `join` first runs all that can come; `stop`, and the destructor without a `join`, let
/// each thread end after the item that it is in, and what is queued then is dropped, never run. The destructor destroys
/// the coroutines that were launched here and have not ended.
/// Threads: `join` from one that isn't the pool's; the executor and `stop` from any. Allocates: when it is made.
class thread_pool {
    class core;

public:
    /// Names a pool; copies are equal.
    class executor_type {
    public:
        [[nodiscard]] static constexpr bool concurrent() noexcept { return true; }

        /// @return `h` when called from one of the pool's threads, else `noop_coroutine` after it was posted
        [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const noexcept;
        void post(work* w) const noexcept;
        /// Behind what is queued here and what came from elsewhere.
        void post_last(work* w) const noexcept;
        [[nodiscard]] bool running_in_this_thread() const noexcept;
        [[nodiscard]] executor_type const& lasting() const noexcept;
        [[nodiscard]] root_list* roots() const noexcept;
        void work_started() const noexcept;
        void work_finished() const noexcept;
        friend bool operator==(executor_type const&, executor_type const&) noexcept = default;

    private:
        friend core;
        explicit executor_type(core& of) noexcept : core_(&of) {}
        core* core_;
    };

    /// @param threads  how many; 0 for as many as the machine can run at once. Where the system gives fewer, these are
    /// used; where it gives none, as in a simulated world, the process ends with a message.
    explicit thread_pool(int threads = 0);
    ~thread_pool();
    thread_pool(thread_pool const&) = delete;
    thread_pool& operator=(thread_pool const&) = delete;

    [[nodiscard]] executor_type const& get_executor() const noexcept;
    [[nodiscard]] int threads() const noexcept;

    /// Waits until nothing is left that could happen, no work that is queued, running, or counted by `work_started`;
    /// then ends the threads. A coroutine that only waits for another is no work. Later posts are dropped.
    void join() noexcept;

    /// Lets each thread end after the item that it is in.
    void stop() noexcept;

private:
    std::unique_ptr<core> core_;
};

static_assert(executor<thread_pool::executor_type>);

}  // namespace plumb
