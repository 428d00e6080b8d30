// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/task/async_frame.hpp>
#include <plumb/task/end_hook.hpp>
#include <plumb/task/frame_allocation.hpp>
#include <plumb/task/plain_awaitable.hpp>

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

namespace plumb {

/// Takes only the executor when it suspends the coroutine: a stop request doesn't reach it.
template <class A>
concept executor_affine_awaitable =
    requires(A& a, std::coroutine_handle<> h, executor_ref const& where) {
        a.await_ready();
        a.await_suspend(h, where);
        a.await_resume();
    };

/// Can be awaited by plumb's coroutines: takes the environment when it suspends the coroutine, or the executor alone,
/// and resumes it on the environment's executor. Source: coroutine-first i/o 5.
template <class A>
concept affine_awaitable =
    executor_affine_awaitable<A> || requires(A& a, std::coroutine_handle<> h, io_env const& env) {
        a.await_ready();
        a.await_suspend(h, env);
        a.await_resume();
    };

template <affine_awaitable A>
constexpr bool suspends_without_throwing = noexcept(
    std::declval<A&>().await_suspend(std::coroutine_handle<>(), std::declval<io_env const&>()));
template <executor_affine_awaitable A>
constexpr bool suspends_without_throwing<A> = noexcept(std::declval<A&>().await_suspend(
    std::coroutine_handle<>(), std::declval<executor_ref const&>()));

/// Suspends `h` in an affine awaitable. @return what its `await_suspend` gives
template <affine_awaitable A, class Promise>
auto suspend_in(A& awaited, std::coroutine_handle<Promise> h,
                io_env const& env) noexcept(suspends_without_throwing<A>) {
    if constexpr (executor_affine_awaitable<A>) {
        return awaited.await_suspend(h, env.executor);
    } else {
        return awaited.await_suspend(h, env);
    }
}

/// Takes the environment out of the promise by itself, which saves a step.
/// Not with GCC 12, which copies what an `await_transform` refers to.
template <class A>
concept takes_env_from_promise = affine_awaitable<A> && A::takes_env_from_promise
#if defined(__GNUC__) && !defined(__clang__)
                                 && false
#endif
    ;

/// What every promise of plumb has: who is resumed at the end, the environment, and where it waits now.
class promise_base : public frame_allocation, public async_frame {
public:
    [[nodiscard]] io_env const& env() const noexcept { return *env_; }
    [[nodiscard]] std::coroutine_handle<> continuation() const noexcept { return continuation_; }

    [[nodiscard]] bool launched() const noexcept { return env_ != nullptr; }
    /// Who is told of the end of the coroutine; null where its continuation is just resumed.
    [[nodiscard]] end_hook* hook() const noexcept { return hook_; }

    /// Before the coroutine is resumed for the first time.
    /// @param hook  where there is one, it sees to it that the awaiter tells what it awaits
    void launch(awaiting continuation, io_env const& env, end_hook* hook = nullptr) noexcept {
        continuation_ = continuation;
        env_ = &env;
        hook_ = hook;
        awaited_by(continuation.frame());
        if (hook == nullptr) {
            continuation.awaits(static_cast<async_frame const&>(*this));
        }
    }
    /// Gives the control back. @return the continuation
    [[nodiscard]] std::coroutine_handle<> give_back() const noexcept {
        if (awaiter() != nullptr) {
            awaiter()->goes_on();
        }
        return continuation_;
    }

    /// Hands the environment to whatever is awaited, by reference: the awaitable stays where it is.
    template <class A>
    struct affine_awaiter {
        A& awaited;

        bool await_ready() noexcept(noexcept(awaited.await_ready())) {
            return awaited.await_ready();
        }
        template <std::derived_from<promise_base> Promise>
        auto
        await_suspend(std::coroutine_handle<Promise> h) noexcept(suspends_without_throwing<A>) {
            return suspend_in(awaited, h, h.promise().env());
        }
        decltype(auto) await_resume() { return awaited.await_resume(); }
    };

    template <class A>
    decltype(auto)
    await_transform(A&& awaited,
                    std::source_location where = std::source_location::
                        current()) noexcept(affine_awaitable<std::remove_reference_t<A>>) {
        using awaitable = std::remove_reference_t<A>;
        static_assert(affine_awaitable<awaitable> || plain_awaitable<A>,
                      "plumb coroutines await affine awaitables: "
                      "await_suspend(std::coroutine_handle<>, io_env const&)");
        awaits_at(where, wait_kind_of<awaitable>);
        if constexpr (takes_env_from_promise<awaitable>) {
            return static_cast<awaitable&>(awaited);
        } else if constexpr (affine_awaitable<awaitable>) {
            return affine_awaiter<awaitable>{awaited};
        } else if constexpr (plain_awaitable<A>) {
            return plain_affine<A>(std::forward<A>(awaited), env());
        } else {
            return std::suspend_never();  // that one message is enough
        }
    }

protected:
    promise_base() noexcept = default;

    /// For the `await_transform` of a promise whose coroutine stacks don't show.
    template <class A>
    decltype(auto) transform_hidden(A&& awaited) noexcept {
        return promise_base::await_transform(awaited, std::source_location());
    }

    /// The handle of a coroutine that begins. GCC 12 puts the result of a condition before the frame
    /// of a coroutine that declares no variable, and this is then a wrong address: better to end.
    template <class Promise>
    static std::coroutine_handle<Promise> begin(Promise& promise,
                                                std::source_location where) noexcept {
        promise.begins_at(where);
        auto const h = std::coroutine_handle<Promise>::from_promise(promise);
#if defined(__GNUC__) && !defined(__clang__)
        constexpr auto alignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;
        require(reinterpret_cast<std::uintptr_t>(h.address()) % alignment == 0,
                "this compiler lays out a coroutine that awaits in a condition wrongly: name the "
                "result, as in `if (auto r = co_await x)`");
#endif
        return h;
    }

private:
    std::coroutine_handle<> continuation_;
    io_env const* env_ = nullptr;
    end_hook* hook_ = nullptr;
};

/// `co_await this_env()` gives the environment of the coroutine, without suspending.
class this_env {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>, io_env const& env) noexcept {
        env_ = &env;
        return false;
    }
    [[nodiscard]] io_env const& await_resume() const noexcept { return *env_; }

private:
    io_env const* env_ = nullptr;
};

}  // namespace plumb
