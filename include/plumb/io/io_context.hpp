// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include <coroutine>
#include <memory>

namespace plumb {

/// A multiplexer with an executor: where coroutines that do i/o run.
///
/// One thread at a time calls `run`; handles that are first used from inside register with this context.
/// Destroying it destroys the coroutines that were launched on it and have not ended, with their operations; it must
/// then not be running, and happens on the thread that ran it last.
/// Threads: `run` from one; `get_executor().post`, `dispatch` and `stop` from any.
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
    io_context() noexcept;
    explicit io_context(std::unique_ptr<io_multiplexer> m) noexcept;
    ~io_context();
    io_context(io_context const&) = delete;
    io_context& operator=(io_context const&) = delete;

    /// Its address is stable: an `executor_ref` to it may be kept as long as the context lives.
    [[nodiscard]] executor_type const& get_executor() const noexcept { return executor_; }
    [[nodiscard]] io_multiplexer& multiplexer() noexcept { return *multiplexer_; }
    [[nodiscard]] root_list& roots() noexcept { return roots_; }

    /// Runs until nothing is left that could happen: no i/o, no timer, no posted and no outside work; or until `stop`.
    /// @return how many items were processed; errors: what the system gives to the wait
    result<std::size_t> run() noexcept;

    /// As `io_multiplexer::run` of its multiplexer, but inside of this context: for loops that bound what is processed.
    /// @param max_items  negative: no bound
    /// @param limit      until when to wait for the first item; zero never waits
    /// @return how many; negative where nothing was ready until `limit` or a `wake`, 0 where nothing is left
    result<int> run_some(int max_items, deadline limit = {}) noexcept;

    /// Ends `run` soon; what is in flight goes on in the next. Any thread.
    void stop() noexcept;

private:
    std::coroutine_handle<> post_resume(std::coroutine_handle<> h) noexcept;

    static thread_local constinit io_context const* running_here;

    std::unique_ptr<io_multiplexer> multiplexer_;
    executor_type executor_;
    root_list roots_;
    std::atomic<bool> stopped_{false};
};

static_assert(executor<io_context::executor_type>);

}  // namespace plumb
