// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/promise_base.hpp>
#include <plumb/task/task_result.hpp>

#include <coroutine>
#include <source_location>
#include <type_traits>
#include <utility>

// Clang 20 and newer put the frame of a task that is awaited where it is called, `co_await f()`, into that of the task
// which awaits it, when they are told that it ends within that expression: the handle goes through the executor, so that
// they can't see it. Only where the body of `f` is in the same unit, and with optimization. Define it as nothing, for
// a whole program, to have all frames from the pool.
#if !defined(PLUMB_AWAIT_ELIDABLE)
#if __has_cpp_attribute(clang::coro_await_elidable)
#define PLUMB_AWAIT_ELIDABLE [[clang::coro_await_elidable]]
#else
#define PLUMB_AWAIT_ELIDABLE
#endif
#endif

namespace plumb {

/// A coroutine that gives a `T` (a value, a reference or void) or an exception to the one that awaits it.
///
/// Lazy: it runs when it is awaited, on the executor and with the stop token of its awaiter, and transfers control
/// symmetrically, so that chains of any length use constant stack. Move-only; whoever holds it owns the coroutine:
/// destroying a task that wasn't started runs nothing, destroying a suspended one cancels what it awaits. What is on its
/// way back to it (from `run_on`, a lock that it was just handed, a sender) must come first: stop the task and await it.
/// Await it once, as an rvalue: `co_await f()` or `co_await std::move(t)`.
/// Threads: its executor's. Allocates: its frame, from the pool or a frame resource, unless the compiler puts it into
/// that of the task which awaits it; throws bad_alloc at the call.
/// Source: coroutine-first i/o 5.3.
template <class T = void>
class [[nodiscard]] PLUMB_AWAIT_ELIDABLE task {
public:
    class promise_type;

    task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~task() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(awaiting waiting, io_env const& env) noexcept {
        require(coroutine_ && !coroutine_.promise().launched(),
                "a task was awaited twice, or after it was moved from");
        coroutine_.promise().launch(waiting, env);
        return coroutine_;
    }
    T await_resume() { return coroutine_.promise().take(); }

    /// An awaitable that runs the task to its end and leaves the result here, to be taken by `take`.
    [[nodiscard]] auto finished() noexcept {
        struct awaitable {
            task& awaited;
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(awaiting h, io_env const& env) noexcept {
                return awaited.await_suspend(h, env);
            }
            void await_resume() const noexcept {}
        };
        return awaitable{*this};
    }
    /// After `finished`: the value, or throws. Once.
    T take() { return coroutine_.promise().take(); }
    [[nodiscard]] task_result<T>& result() noexcept { return coroutine_.promise(); }

    /// For launchers: the coroutine, still owned here.
    [[nodiscard]] std::coroutine_handle<promise_type> coroutine() const noexcept {
        return coroutine_;
    }

private:
    explicit task(std::coroutine_handle<promise_type> c) noexcept : coroutine_(c) {}

    std::coroutine_handle<promise_type> coroutine_;
};

/// The end of a coroutine that has an awaiter: resumes it, or tells the hook that it was launched with.
struct final_awaiter {
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
        // The last touch: the awaiter may destroy the frame as soon as it runs.
        Promise& p = ended.promise();
        end_hook* const hook = p.hook();
        return hook == nullptr ? p.give_back() : (*hook)(p, p.failed());
    }
    void await_resume() const noexcept {}
};

template <class T>
class task<T>::promise_type : public promise_base, public task_result<T> {
public:
    task get_return_object(std::source_location here = std::source_location::current()) noexcept {
        return task(this->begin(*this, here));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { this->set_failure(task_failure::current(*this)); }

    // A reference is never to a temporary, which would be gone.
    template <class U = T>
        requires(std::is_convertible_v<U &&, T> &&
                 (!std::is_reference_v<T> || std::is_lvalue_reference_v<U>))
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
        this->set_value(std::forward<U>(value));
    }
};

template <>
class task<void>::promise_type : public promise_base, public task_result<void> {
public:
    task get_return_object(std::source_location here = std::source_location::current()) noexcept {
        return task(this->begin(*this, here));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { this->set_failure(task_failure::current(*this)); }
    void return_void() noexcept { this->set_value(); }
};

}  // namespace plumb
