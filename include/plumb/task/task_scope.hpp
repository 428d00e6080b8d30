// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/atomic.hpp>
#include <plumb/exec/nested_stop_source.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/promise_base.hpp>
#include <plumb/task/task.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

namespace plumb {

/// Where tasks are launched that nobody awaits one by one, and that all have ended before the scope does:
///
///     co_await task_scope::run([&](task_scope& scope) -> task<> {
///         while (auto peer = co_await accept()) {
///             scope.spawn(serve(std::move(*peer)));
///         }
///     });
///
/// A stop request of the coroutine that runs the scope reaches the body and all children. The first that fails stops
/// the rest, and its exception leaves the scope; a child that ends as cancelled after a stop was requested hasn't failed.
///
/// States: open (the body runs) -> ending (it waits for the children) -> ended. `left_` counts the children and the body;
/// who counts down to zero resumes the scope. A child belongs to the executor's queue until it begins, and then to
/// itself; the list of them is for a scope that is destroyed where it is suspended.
/// Threads: its executor's, all at once where that has several. Allocates: frames, from the pool.
class task_scope : public suspension {
public:
    task_scope(task_scope const&) = delete;
    task_scope& operator=(task_scope const&) = delete;
    ~task_scope() { spawned_.destroy_all(); }

    /// Calls `body` with a new scope, awaits the task that it returns and all that was spawned, and gives the body's
    /// value. `body` and its captures live until all have ended; the locals of its task only until that ends.
    template <std::invocable<task_scope&> F>
    static std::invoke_result_t<F&, task_scope&> run(F body) {
        F kept = std::move(body);
        task_scope scope(co_await this_env());
        auto main = kept(scope);  // ends before the scope
        co_await scope.begin(main);
        if (main.result().failed()) {
            scope.fail(main.result().failure());
        }
        co_await joined{scope};
        if (scope.failed_.load()) {
            scope.failure_.rethrow();
        }
        co_return main.take();
    }

    /// Launches a task. It begins later, never inline; its value is dropped.
    /// Threads: inside the executor, from the body or a child. Allocates: a frame, from the pool; throws bad_alloc.
    template <class T>
    void spawn(task<T> t) {
        child::make(*this, std::move(t)).coroutine.promise().post_start();
    }

    /// Stops the body and all children, also those that are spawned later. Threads: inside the executor.
    void request_stop() noexcept { stop_.request_stop(); }
    [[nodiscard]] stop_token token() noexcept { return stop_.token(); }

    /// The body's coroutine until it has ended, and those that were spawned: for reports.
    [[nodiscard]] async_frame const* body() const noexcept { return body_; }
    [[nodiscard]] root_list const& spawned() const noexcept { return spawned_; }

private:
    /// The coroutine that owns a spawned task.
    struct child {
        class promise_type;

        template <class T>
        static child make(task_scope& scope, task<T> spawned) {
            task<T> t = std::move(spawned);
            co_await t.finished();
            if (t.result().failed()) {
                scope.fail(t.result().failure());
            }
        }

        std::coroutine_handle<promise_type> coroutine;
    };

    /// Awaits the end of the body.
    template <class T>
    auto begin(task<T>& body) noexcept {
        struct awaitable {
            task_scope& scope;
            task<T>& body;
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(awaiting h, io_env const&) noexcept {
                auto const begins = body.await_suspend(h, scope.stop_.env());
                scope.waiting_ = h;
                scope.body_ = &body.coroutine().promise();
                h.awaits(static_cast<suspension const&>(scope));
                return begins;
            }
            void await_resume() const noexcept { scope.body_ = nullptr; }
        };
        return awaitable{*this, body};
    }

    struct joined {
        task_scope& scope;
        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const&) noexcept {
            h.awaits(static_cast<suspension const&>(scope));
            return scope.left_.fetch_sub(1) != 1;
        }
        void await_resume() const noexcept { scope.waiting_.goes_on(); }
    };

    explicit task_scope(io_env const& env) noexcept
        : suspension(form::scope), stop_(env), spawned_(env.executor.concurrent()) {}

    void fail(task_failure failure) noexcept;
    /// @return what to resume
    std::coroutine_handle<> child_ended() noexcept {
        return left_.fetch_sub(1) == 1 ? std::coroutine_handle<>(waiting_) : std::noop_coroutine();
    }

    nested_stop_source stop_;
    root_list spawned_;
    awaiting waiting_;
    async_frame const* body_ = nullptr;
    task_failure failure_;  // of whoever set `failed_`
    atomic<bool> failed_{false};
    atomic<std::size_t> left_{1};
};

class task_scope::child::promise_type : public promise_base, private work, private root_node {
public:
    template <class T>
    promise_type(task_scope& scope, task<T> const&) noexcept
        : work(&promise_type::start),
          root_node(&promise_type::destroy_suspended, nullptr, this),
          scope_(scope) {
        launch(std::noop_coroutine(), scope.stop_.env());
        // Not by the scope's own coroutine, which may run meanwhile, but by the one that awaits that.
        if (async_frame const* const run = scope.waiting_.frame()) {
            awaited_by(run->awaiter());
        }
    }

    child get_return_object() noexcept { return {self()}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
        struct leaving {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                task_scope& scope = ended.promise().scope_;
                ended.destroy();  // with all that the task owned, before the scope may end
                return scope.child_ended();
            }
            void await_resume() const noexcept {}
        };
        return leaving();
    }
    template <class A>
    decltype(auto) await_transform(A&& awaited) noexcept {
        return transform_hidden(awaited);
    }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // a task keeps its own

    void post_start() noexcept {
        scope_.left_.fetch_add(1);
        scope_.spawned_.add(*this);
        // Where it is about to be destroyed with the rest, its node must not be left in a queue.
        root_list const* const roots = env().executor.roots();
        if (!scope_.spawned_.ends() && (roots == nullptr || !roots->ends())) {
            env().executor.post(this);
        }
    }

private:
    std::coroutine_handle<promise_type> self() noexcept {
        return std::coroutine_handle<promise_type>::from_promise(*this);
    }
    static void start(work& w) noexcept { static_cast<promise_type&>(w).self().resume(); }
    static void destroy_suspended(root_node& n) noexcept {
        static_cast<promise_type&>(n).self().destroy();
    }

    task_scope& scope_;
};

}  // namespace plumb
