// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/async_stacktrace.hpp>

#include <exception>
#include <utility>

namespace plumb {

/// The exception that left a coroutine, with the asynchronous stack at the innermost one that it left.
/// Copies share both. Threads: one at a time. Allocates: never, but for the stack.
class task_failure {
public:
    task_failure() noexcept = default;
    explicit task_failure(std::exception_ptr e) noexcept : exception_(std::move(e)) {}

    /// In `unhandled_exception`: of the one that leaves this coroutine now. Where it has left another one before it keeps
    /// the stack of that.
    [[nodiscard]] static task_failure current(async_frame const& left) noexcept;

    /// Null where there is none.
    [[nodiscard]] std::exception_ptr const& exception() const noexcept { return exception_; }
    [[nodiscard]] async_stacktrace const& stack() const noexcept { return stack_; }

    [[noreturn]] void rethrow() const;

    /// In `unhandled_exception`, where nobody awaits: prints the exception and its stack, and ends the process.
    [[noreturn]] static void end_process() noexcept;

private:
    std::exception_ptr exception_;
    async_stacktrace stack_;
};

}  // namespace plumb
