// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/frame_allocation.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <utility>

namespace plumb {

/// Is awaited by a coroutine handle alone, as those of other libraries are: it knows no executor.
template <class A>
concept plain_awaiter = requires(A& a, std::coroutine_handle<> h) {
    { a.await_ready() } -> std::convertible_to<bool>;
    a.await_suspend(h);
    a.await_resume();
};

template <class A>
decltype(auto) plain_awaiter_of(A&& awaited) {
    if constexpr (requires { std::forward<A>(awaited).operator co_await(); }) {
        return std::forward<A>(awaited).operator co_await();
    } else if constexpr (requires { operator co_await(std::forward<A>(awaited)); }) {
        return operator co_await(std::forward<A>(awaited));
    } else {
        return (awaited);
    }
}

/// Something that another library's coroutines could await: a plain awaiter, or what `operator co_await` makes one of.
template <class A>
concept plain_awaitable = requires(A&& a) {
    { plain_awaiter_of(std::forward<A>(a)) } -> plain_awaiter;
};

/// A coroutine that stands for one that waits: whoever resumes it, on whichever thread, it has that one go on on its own
/// executor. Counts as outside work there as long as it is, so that the context doesn't end meanwhile for lack of work.
///
/// States: suspended at its start -> resumed, once -> posted, unless inside the executor already -> the other goes on.
/// Threads: any. Allocates: its frame, from the pool.
class stand_in {
public:
    class promise_type;

    stand_in() noexcept = default;
    stand_in(stand_in const&) = delete;
    stand_in& operator=(stand_in const&) = delete;
    ~stand_in() { end(); }

    /// Throws bad_alloc. @return what to give away in place of `waiting`
    std::coroutine_handle<> begin(std::coroutine_handle<> waiting, io_env const& env);
    void end() noexcept {
        if (coroutine_) {
            std::exchange(coroutine_, nullptr).destroy();
        }
    }

private:
    struct made;
    static made make(std::coroutine_handle<> waiting, io_env const& env);

    std::coroutine_handle<> coroutine_;
};

/// How a coroutine of plumb awaits what knows no executor: it goes on on its own all the same. A stop request doesn't
/// reach it.
template <plain_awaitable A>
class plain_affine {
public:
    plain_affine(A&& awaited, io_env const& env)
        : awaiter_(plain_awaiter_of(std::forward<A>(awaited))), env_(&env) {}
    plain_affine(plain_affine const&) = delete;
    plain_affine& operator=(plain_affine const&) = delete;

    [[nodiscard]] bool await_ready() { return awaiter_.await_ready(); }
    auto await_suspend(std::coroutine_handle<> waiting) {
        return awaiter_.await_suspend(instead_.begin(waiting, *env_));
    }
    decltype(auto) await_resume() {
        instead_.end();
        return awaiter_.await_resume();
    }

private:
    decltype(plain_awaiter_of(std::declval<A>())) awaiter_;
    io_env const* env_;
    stand_in instead_;
};

}  // namespace plumb
