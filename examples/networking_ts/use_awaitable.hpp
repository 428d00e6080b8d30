// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_result.hpp"
#include "networking_ts/executor.hpp"
#include "networking_ts/operation.hpp"

#include <plumb/base/throw_error.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/task.hpp>

#include <coroutine>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace networking_ts {

/// The token that makes an initiating function return something to be awaited by a `plumb::task`.
struct use_awaitable_t {};
inline constexpr use_awaitable_t use_awaitable{};

/// Coroutines are plumb's.
template <class T = void>
using awaitable = plumb::task<T>;

/// Begins an operation when it is awaited, and gives its value or throws `std::system_error`.
///
/// A stop request that reaches the coroutine cancels the operation. Destroying a coroutine that waits destroys it.
/// Threads: awaited inside of the operation's context.
template <class T, class Initiation, class... Args>
class [[nodiscard]] awaited_operation {
public:
    awaited_operation(Initiation start, Args... args)
        : start_(std::move(start)), args_(std::move(args)...) {}
    awaited_operation(awaited_operation const&) = delete;
    awaited_operation& operator=(awaited_operation const&) = delete;
    ~awaited_operation() { slot_.destroy(); }

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    bool await_suspend(std::coroutine_handle<> waiting, plumb::io_env const& env) {
        if (env.stop.stop_requested()) {
            error_ = std::make_error_code(std::errc::operation_canceled);
            return false;
        }
        waiting_ = waiting;
        env_ = &env;
        stop_.emplace(env.stop, on_stop{&slot_});
        std::apply([this](Args&... args) { start_(handler{this}, std::move(args)...); }, args_);
        return true;
    }

    T await_resume() {
        if (error_) {
            plumb::throw_error(error_);
        }
        if constexpr (!std::is_void_v<T>) {
            return std::move(*value_);
        }
    }

private:
    struct handler {
        awaited_operation* of;

        [[nodiscard]] operation_slot* slot() const noexcept { return &of->slot_; }

        template <class... Value>
        void operator()(std::error_code error, Value&&... value) const {
            of->error_ = error;
            (of->value_.emplace(std::forward<Value>(value)), ...);
            (*this)();
        }
        void operator()() const {
            of->stop_.reset();
            of->env_->executor.dispatch(of->waiting_).resume();
        }
    };
    struct on_stop {
        operation_slot* slot;
        void operator()() const noexcept { slot->cancel(); }
    };
    struct nothing {};

    [[no_unique_address]] Initiation start_;
    std::tuple<Args...> args_;
    std::coroutine_handle<> waiting_;
    plumb::io_env const* env_ = nullptr;
    operation_slot slot_;
    std::optional<plumb::stop_callback<on_stop>> stop_;
    std::error_code error_;
    std::optional<std::conditional_t<std::is_void_v<T>, nothing, T>> value_;
};

template <class T>
struct async_result_as_awaitable {
    template <class Initiation, class... Args>
    static auto initiate(Initiation start, use_awaitable_t, Args... args) {
        return awaited_operation<T, Initiation, Args...>(std::move(start), std::move(args)...);
    }
};
template <>
struct async_result<use_awaitable_t, void()> : async_result_as_awaitable<void> {};
template <>
struct async_result<use_awaitable_t, void(std::error_code)> : async_result_as_awaitable<void> {};
template <class T>
struct async_result<use_awaitable_t, void(std::error_code, T)> : async_result_as_awaitable<T> {};

/// The token that asks for no answer.
struct detached_t {};
inline constexpr detached_t detached{};

/// Launches a coroutine on an executor; what it throws is nobody's. It is destroyed with its context at the latest.
template <plumb::executor E, class T>
void co_spawn(E const& e, awaitable<T> what, detached_t) {
    post_work(e, [e, what = std::move(what)]() mutable {
        plumb::async_run(e, std::move(what), {}, [](plumb::task_result<T>&) {});
    });
}
template <execution_context C, class T>
void co_spawn(C& c, awaitable<T> what, detached_t) {
    networking_ts::co_spawn(c.get_executor(), std::move(what), detached);
}

}  // namespace networking_ts
