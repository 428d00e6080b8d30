// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/task/frame_allocation.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace plumb {

/// A range whose values a coroutine yields one by one, as they are asked for: `for (int n : count_to(10))`.
///
/// The range refers to the object that was yielded, where it is; an lvalue stays the coroutine's, a temporary lives until
/// the next value is asked for; a const object needs a `generator<T const&>`. An exception of the coroutine leaves
/// `begin` or `++`. Move-only; destroying it ends the coroutine where it is. Awaits nothing: see `async_generator`.
/// Threads: one at a time. Allocates: its frame, from the pool or a frame resource; throws bad_alloc at the call.
template <class T>
class [[nodiscard]] generator {
    using value = std::remove_reference_t<T>;

public:
    class promise_type : public frame_allocation {
    public:
        generator get_return_object() noexcept {
            return generator(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        std::suspend_always yield_value(value& v) noexcept {
            yielded_ = std::addressof(v);
            return {};
        }
        std::suspend_always yield_value(value&& v) noexcept
            requires(!std::is_lvalue_reference_v<T>)
        {
            return yield_value(v);
        }
        void return_void() const noexcept {}
        void unhandled_exception() { throw; }

        template <class A>
        void await_transform(A&&) = delete;  // an async_generator awaits

    private:
        friend generator;
        value* yielded_ = nullptr;
    };

    class iterator {
    public:
        using iterator_concept = std::input_iterator_tag;
        using difference_type = std::ptrdiff_t;
        using value_type = std::remove_cv_t<value>;

        iterator() noexcept = default;

        [[nodiscard]] value& operator*() const noexcept { return *of_.promise().yielded_; }
        [[nodiscard]] value* operator->() const noexcept { return of_.promise().yielded_; }
        iterator& operator++() {
            of_.resume();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(iterator const& i, std::default_sentinel_t) noexcept {
            return i.of_.done();
        }

    private:
        friend generator;
        explicit iterator(std::coroutine_handle<promise_type> of) noexcept : of_(of) {}
        std::coroutine_handle<promise_type> of_;
    };

    generator(generator&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    generator& operator=(generator&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~generator() {
        if (coroutine_) {
            coroutine_.destroy();
        }
    }

    /// Runs it to its first value. Once.
    [[nodiscard]] iterator begin() {
        require(coroutine_ && coroutine_.promise().yielded_ == nullptr,
                "a generator was begun twice, or after it was moved from");
        coroutine_.resume();
        return iterator(coroutine_);
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    explicit generator(std::coroutine_handle<promise_type> c) noexcept : coroutine_(c) {}

    std::coroutine_handle<promise_type> coroutine_;
};

}  // namespace plumb
