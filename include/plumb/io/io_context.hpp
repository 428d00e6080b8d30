// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/context_roots.hpp>
#include <plumb/exec/executor.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <memory>

namespace plumb {

/// A multiplexer with an executor: where coroutines that do i/o run.
///
/// One thread at a time calls `run`; or, where it was made for several, any number of them at once. Handles that are
/// first used from inside register with this context.
/// Destroying it destroys the coroutines that were launched on it and have not ended, with their operations; it must
/// then not be running, and where it is for one thread happens on the one that ran it last.
///
/// Of several threads one waits for i/o at a time and hands what has ended to the others, so that a coroutine goes on
/// on any of them. Give each connection a `strand` over the executor: what is in it runs one after another. A handle
/// may be used and closed on each of the threads, but not be moved while something is in flight on it; a close comes
/// before or after what another thread starts on it, not at the same time. Where two strands share it from the
/// beginning, `set_multiplexer` comes before. What is no `co_await` of an operation needs a
/// context for one thread: a started `io_operation_connection`, `with_deadline`, the streams of `aio`. So does a
/// `zero_copy_write`, else it copies. Such a context also does a round trip for less: a server of many connections is
/// better off with one on each thread. A receiver of one such context closes no handle of another.
/// Threads: `run` as said; `get_executor().post`, `dispatch` and `stop` from any.
class io_context {
public:
    /// Names a context; copies are equal. Source: coroutine-first i/o 3.
    class executor_type {
    public:
        /// @return `h` when called from inside `run` of this context, else `noop_coroutine` after it was posted
        [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const noexcept {
            return running_in_this_thread() ? h : context_->post_resume(h);
        }
        void post(work* w) const noexcept { context_->multiplexer_->post(*w); }
        [[nodiscard]] bool running_in_this_thread() const noexcept {
            return running_here == context_;
        }
        /// Whether the context is for several threads.
        [[nodiscard]] bool concurrent() const noexcept { return context_->concurrent_; }
        [[nodiscard]] io_context& context() const noexcept { return *context_; }
        [[nodiscard]] executor_type const& lasting() const noexcept { return context_->executor_; }
        [[nodiscard]] root_list* roots() const noexcept { return &context_->roots_; }
        void work_started() const noexcept { context_->multiplexer_->work_started(); }
        void work_finished() const noexcept { context_->multiplexer_->work_finished(); }
        friend bool operator==(executor_type const&, executor_type const&) noexcept = default;

    private:
        friend io_context;
        explicit executor_type(io_context& c) noexcept : context_(&c) {}
        io_context* context_;
    };

    /// Over the best multiplexer that works here. Terminates with a message where there is none.
    /// @param threads  how many may call `run` at once: one, or any number
    explicit io_context(int threads = 1) noexcept;
    /// For as many threads as its multiplexer was made for.
    explicit io_context(std::unique_ptr<io_multiplexer> m) noexcept;
    ~io_context();
    io_context(io_context const&) = delete;
    io_context& operator=(io_context const&) = delete;

    /// Its address is stable: an `executor_ref` to it may be kept as long as the context lives.
    [[nodiscard]] executor_type const& get_executor() const noexcept { return executor_; }
    [[nodiscard]] io_multiplexer& multiplexer() noexcept { return *multiplexer_; }
    [[nodiscard]] root_list& roots() noexcept { return roots_; }

    /// Runs until nothing is left that could happen: no i/o, no timer, no posted and no outside work; or until `stop`.
    /// Where several threads do, all of them return then; and none of them calls it from inside.
    /// @return how many items this call processed; errors: what the system gives to the wait
    result<std::size_t> run() noexcept;

    /// As `io_multiplexer::run` of its multiplexer, but inside of this context: for loops that bound what is processed.
    /// @param max_items  negative: no bound
    /// @param limit      until when to wait for the first item; zero never waits
    /// @return how many; negative where nothing was ready until `limit` or a `wake`, 0 where nothing is left
    result<int> run_some(int max_items, deadline limit = {}) noexcept;

    /// From now on `run` calls this when nothing can happen any more while coroutines that were launched here have not
    /// ended: no i/o, no timer, no outside work. Such as `[](io_context& c) noexcept { print_waits(c.roots()); }`.
    /// Of several threads, the last to leave `run` calls it.
    void on_stall(void (*stalled)(io_context&) noexcept) noexcept { on_stall_ = stalled; }

    /// Ends each `run` soon that is under way, or where none is, the next one; what is in flight goes on in a later
    /// one. Any thread.
    void stop() noexcept;

private:
    std::coroutine_handle<> post_resume(std::coroutine_handle<> h) noexcept;
    /// @return whether no other is under way
    bool leave_run() noexcept;

    static thread_local constinit io_context const* running_here;

    static constexpr unsigned stopped = 1;
    static constexpr unsigned one_run = 2;

    std::unique_ptr<io_multiplexer> multiplexer_;
    bool const concurrent_;
    executor_type executor_;
    context_roots roots_;
    void (*on_stall_)(io_context&) noexcept = nullptr;
    std::atomic<unsigned> runs_{
        0};  // how many are under way; and whether they are stopped, which the last one ends
};

static_assert(executor<io_context::executor_type>);

}  // namespace plumb
