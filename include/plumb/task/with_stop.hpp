// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/task/promise_base.hpp>

#include <coroutine>

namespace plumb {

/// `co_await with_stop(token, s.write(data))`: awaits with another stop token than the coroutine's own, and gives
/// what the awaitable gives. A default-constructed token lets nothing stop it.
///
/// For what must go on when the coroutine is stopped, such as a write that has begun. Takes a temporary, and is
/// awaited in the expression that makes it. The token's source belongs to the coroutine's executor and outlives this.
/// Cancel-safe: as what it awaits. Threads: the executor's. Allocates: never.
template <affine_awaitable A>
class [[nodiscard]] with_stop {
public:
    with_stop(stop_token stop, A&& awaited) noexcept : awaited_(awaited), env_{{}, stop} {}
    with_stop(with_stop const&) = delete;
    with_stop& operator=(with_stop const&) = delete;

    static constexpr auto waits_for = wait_kind_of<A>;
    [[nodiscard]] bool await_ready() { return awaited_.await_ready(); }
    template <class Promise>
    auto await_suspend(std::coroutine_handle<Promise> waiting, io_env const& env) {
        env_.executor = env.executor;
        return suspend_in(awaited_, waiting, env_);
    }
    decltype(auto) await_resume() { return awaited_.await_resume(); }

private:
    A& awaited_;
    io_env env_;
};

}  // namespace plumb
