// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/task/task_failure.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace plumb {

/// What a coroutine ended with: nothing yet, a value, or an exception.
template <class T>
class task_result {
    static_assert(!std::is_rvalue_reference_v<T>,
                  "a task gives a value, an lvalue reference or void");
    using stored = std::conditional_t<
        std::is_void_v<T>, std::monostate,
        std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;

public:
    task_result() noexcept {}
    task_result(task_result&& other) noexcept(std::is_nothrow_move_constructible_v<stored>) {
        if (other.state_ == state::value) {
            std::construct_at(&value_, std::move(other.value_));
        } else if (other.state_ == state::exception) {
            std::construct_at(&failure_, std::move(other.failure_));
        }
        state_ = other.state_;
    }
    task_result& operator=(task_result&&) = delete;

    ~task_result() { clear(); }

    [[nodiscard]] bool has_value() const noexcept { return state_ == state::value; }
    [[nodiscard]] bool failed() const noexcept { return state_ == state::exception; }

    void set_value() noexcept
        requires std::is_void_v<T>
    {
        std::construct_at(&value_);
        state_ = state::value;
    }
    template <class U>
    void set_value(U&& value) {
        if constexpr (std::is_reference_v<T>) {
            std::construct_at(&value_, std::addressof(value));
        } else {
            std::construct_at(&value_, std::forward<U>(value));
        }
        state_ = state::value;
    }

    /// Also after a value: what a local of the coroutine throws at its end.
    void set_failure(task_failure f) noexcept {
        clear();
        std::construct_at(&failure_, std::move(f));
        state_ = state::exception;
    }
    void set_exception(std::exception_ptr e) noexcept { set_failure(task_failure(std::move(e))); }

    /// @return the exception, or null
    [[nodiscard]] std::exception_ptr exception() const noexcept { return failure().exception(); }
    /// @return the exception and the stack where it was thrown, or none
    [[nodiscard]] task_failure failure() const noexcept {
        return failed() ? failure_ : task_failure();
    }

    /// Gives the value, or throws the exception. Once.
    T take() {
        if (state_ == state::exception) {
            failure_.rethrow();
        }
        PLUMB_ASSERT(state_ == state::value);
        if constexpr (std::is_reference_v<T>) {
            return *value_;
        } else if constexpr (!std::is_void_v<T>) {
            return std::move(value_);
        }
    }

private:
    enum class state : std::uint8_t { empty, value, exception };

    void clear() noexcept {
        if (state_ == state::value) {
            std::destroy_at(&value_);
        } else if (state_ == state::exception) {
            std::destroy_at(&failure_);
        }
        state_ = state::empty;
    }

    union {
        stored value_;
        task_failure failure_;
    };
    state state_ = state::empty;
};

}  // namespace plumb
