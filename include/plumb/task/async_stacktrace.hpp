// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/task/async_frame.hpp>

#include <cstddef>
#include <exception>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace plumb {

/// The name of the function that a location is in, without what the compiler adds for coroutines.
[[nodiscard]] std::string_view function_of(std::source_location where) noexcept;

/// The asynchronous call stack: where a coroutine awaits, where the one that awaits it does, and so on, innermost first.
/// A coroutine that has not awaited yet is where it begins.
///
/// A value; copies share what they hold. Threads: any; to take one, the coroutine's executor. Allocates: one block when
/// it is taken, from the pool; it is empty where there is no memory.
class async_stacktrace {
public:
    /// How many frames are kept; `truncated` tells of more.
    static constexpr std::size_t most = 64;

    async_stacktrace() noexcept = default;
    explicit async_stacktrace(async_frame const& innermost) noexcept;
    async_stacktrace(async_stacktrace const& other) noexcept;
    async_stacktrace(async_stacktrace&& other) noexcept
        : held_(std::exchange(other.held_, nullptr)) {}
    async_stacktrace& operator=(async_stacktrace other) noexcept {
        std::swap(held_, other.held_);
        return *this;
    }
    ~async_stacktrace() {
        if (held_ != nullptr) {
            release();
        }
    }

    /// `co_await async_stacktrace::current()`: of the coroutine itself, which is not suspended.
    [[nodiscard]] static auto current() noexcept;

    /// Of an exception that left a task: the stack there. Ask where it was caught, or in the completion of a root: only
    /// the last one of the thread is known, which until then lives on. Else empty.
    [[nodiscard]] static async_stacktrace of(std::exception_ptr const& e) noexcept;

    [[nodiscard]] bool empty() const noexcept { return held_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] std::source_location const* begin() const noexcept;
    [[nodiscard]] std::source_location const* end() const noexcept { return begin() + size(); }
    [[nodiscard]] std::source_location const& operator[](std::size_t i) const noexcept {
        return begin()[i];
    }
    [[nodiscard]] bool truncated() const noexcept;

    /// A line for each frame: `[0] function at file:line`.
    [[nodiscard]] std::string to_string() const;

private:
    struct block;
    void release() noexcept;

    block* held_ = nullptr;
};

/// What `async_stacktrace::current` returns.
class [[nodiscard]] current_async_stacktrace {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(awaiting h, io_env const&) noexcept {
        frame_ = h.frame();
        return false;
    }
    [[nodiscard]] async_stacktrace await_resume() const noexcept {
        return frame_ != nullptr ? async_stacktrace(*frame_) : async_stacktrace();
    }

private:
    async_frame const* frame_ = nullptr;
};

inline auto async_stacktrace::current() noexcept { return current_async_stacktrace(); }

}  // namespace plumb
