// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/async_stacktrace.hpp>

#include <cstdio>

namespace plumb {

/// `co_await dump_callstack()`: prints the asynchronous stack of the coroutine, a line for each frame, innermost first.
/// Doesn't suspend. Allocates: for the text. Source: asyncio for C++20.
class [[nodiscard]] dump_callstack {
public:
    explicit dump_callstack(std::FILE* to = stderr) noexcept : to_(to) {}

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(awaiting h, io_env const& env) noexcept {
        return stack_.await_suspend(h, env);
    }
    void await_resume() const { std::fputs(stack_.await_resume().to_string().c_str(), to_); }

private:
    std::FILE* to_;
    current_async_stacktrace stack_;
};

}  // namespace plumb
