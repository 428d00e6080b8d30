// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/async_wait.hpp>

namespace plumb::aio {

/// `co_await sleep(d)`: suspends for a duration or until a time. Throws `operation_canceled` when the task is stopped.
class [[nodiscard]] sleep {
public:
    explicit sleep(deadline until) noexcept : wait_(async_wait(until)) {}

    static constexpr auto waits_for = wait_kind::time;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h, io_env const& env) noexcept {
        return wait_.await_suspend(h, env);
    }
    void await_resume() { wait_.await_resume().value(); }

private:
    io_awaitable<async_wait> wait_;
};

}  // namespace plumb::aio
