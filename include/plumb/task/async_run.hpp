// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/task.hpp>

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace plumb {

/// The coroutine that nobody awaits: it owns the executor, the environment and the task that was launched, posts its
/// own start, and frees itself at the end. Source: coroutine-first i/o 6.2.
template <executor E>
class root_coroutine {
public:
    class promise_type;

    /// Suspended before its start. Not a lambda: compilers disagree whether a promise is told of the lambda itself.
    template <class T, class Completed>
    static root_coroutine make(E, stop_token, task<T> launched, Completed completed) {
        task<T> t =
            std::move(launched);  // parameters outlive the promise, which holds the environment
        co_await t.finished();
        task_result<T> ended = std::move(t.result());
        {
            task<T> const over = std::move(t);
        }  // and its parameters
        completed(ended);
    }

    std::coroutine_handle<promise_type> coroutine;
};

template <executor E>
class root_coroutine<E>::promise_type : public promise_base, private work, private root_node {
public:
    template <class... Rest>
    explicit promise_type(E const& where, stop_token stop, Rest const&...) noexcept
        : work(&promise_type::start),
          root_node(&promise_type::destroy_suspended, stop.source(), this),
          executor_(where),
          env_{executor_, stop} {
        launch(std::noop_coroutine(), env_);
    }

    root_coroutine get_return_object() noexcept { return {self()}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    template <class A>
    decltype(auto) await_transform(A&& awaited) noexcept {
        return this->transform_hidden(awaited);
    }
    // Not suspended at the end: the frame is freed there.
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { task_failure::end_process(); }

    void post_start() noexcept {
        if (root_list* const roots = env_.executor.roots()) {
            roots->add(*this);
        }
        executor_.post(this);
    }

private:
    std::coroutine_handle<promise_type> self() noexcept {
        return std::coroutine_handle<promise_type>::from_promise(*this);
    }
    static void start(work& w) noexcept { static_cast<promise_type&>(w).self().resume(); }
    static void destroy_suspended(root_node& n) noexcept {
        static_cast<promise_type&>(n).self().destroy();
    }

    E executor_;
    io_env env_;
};

/// Launches a task on an executor, which the root owns a copy of. Returns at once; the task starts when the executor
/// runs. An exception that leaves it ends the process with a message: see the form with a completion.
/// A context destroys the roots that have not ended when it is destroyed itself.
/// @param stop  cancels the task; its source must outlive it
/// Threads: of a context that is running, only its own. Allocates: the root's frame, from the pool.
template <executor E, class T>
void async_run(E where, task<T> what, stop_token stop = {}) {
    async_run(std::move(where), std::move(what), stop, [](task_result<T>& r) { r.take(); });
}

/// As above; `completed(task_result<T>&)` is called on the executor at the end, when the task is gone with its locals and
/// its parameters, with the value or the exception.
template <executor E, class T, std::invocable<task_result<T>&> Completed>
void async_run(E where, task<T> what, stop_token stop, Completed completed) {
    root_coroutine<E>::make(std::move(where), stop, std::move(what), std::move(completed))
        .coroutine.promise()
        .post_start();
}

}  // namespace plumb
