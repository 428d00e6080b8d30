// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/task/promise_base.hpp>
#include <plumb/task/task_failure.hpp>

#include <coroutine>
#include <memory>
#include <source_location>
#include <type_traits>
#include <utility>

namespace plumb {

/// A coroutine that yields values one by one and may await in between:
///
///     while (auto* const line = co_await lines.next()) { use(*line); }
///
/// `next` runs it to its next value, with the executor and the stop token of the caller, and gives a pointer to what was
/// yielded, which is valid until the following `next`; null at the end; an exception of the coroutine is thrown there.
/// Control is transferred symmetrically, so that any number of values uses constant stack. Move-only; destroying it where
/// it is suspended cancels what it awaits.
/// Threads: the executor's. Allocates: its frame, from the pool or a frame resource; throws bad_alloc at the call.
template <class T>
class [[nodiscard]] async_generator {
    using value = std::remove_reference_t<T>;

public:
    class promise_type : public promise_base {
        struct to_consumer {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> h) const noexcept {
                return h.promise().give_back();
            }
            void await_resume() const noexcept {}
        };

    public:
        async_generator
        get_return_object(std::source_location here = std::source_location::current()) noexcept {
            return async_generator(this->begin(*this, here));
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        auto final_suspend() noexcept {
            yielded_ = nullptr;
            return to_consumer{};
        }
        auto yield_value(value& v) noexcept {
            yielded_ = std::addressof(v);
            return to_consumer{};
        }
        auto yield_value(value&& v) noexcept
            requires(!std::is_lvalue_reference_v<T>)
        {
            return yield_value(v);
        }
        void return_void() const noexcept {}
        void unhandled_exception() noexcept { failure_ = task_failure::current(*this); }

    private:
        friend async_generator;
        value* yielded_ = nullptr;
        task_failure failure_;
    };

    async_generator(async_generator&& other) noexcept
        : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    async_generator& operator=(async_generator&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~async_generator() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    class [[nodiscard]] next_awaitable {
    public:
        explicit next_awaitable(std::coroutine_handle<promise_type> of) noexcept : of_(of) {}

        [[nodiscard]] bool await_ready() const noexcept { return of_.done(); }
        std::coroutine_handle<> await_suspend(awaiting h, io_env const& env) noexcept {
            of_.promise().launch(h, env);
            return of_;
        }
        [[nodiscard]] value* await_resume() {
            promise_type& p = of_.promise();
            if (p.failure_.exception() != nullptr) {
                std::exchange(p.failure_, task_failure()).rethrow();
            }
            return p.yielded_;
        }

    private:
        std::coroutine_handle<promise_type> of_;
    };

    /// Awaits the next value: a pointer to it, or null at the end and ever after. One at a time.
    /// Cancel-safe: as what the coroutine awaits.
    next_awaitable next() noexcept {
        require(static_cast<bool>(coroutine_),
                "an async_generator was used after it was moved from");
        return next_awaitable(coroutine_);
    }

private:
    explicit async_generator(std::coroutine_handle<promise_type> c) noexcept : coroutine_(c) {}

    std::coroutine_handle<promise_type> coroutine_;
};

}  // namespace plumb
