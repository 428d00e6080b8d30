// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/exec/wait_kind.hpp>
#include <plumb/io/io_operation.hpp>

#include <coroutine>

namespace plumb {

/// What `co_read`, `co_write` and their kin return: awaits a sender's operation, whose state lives in the
/// coroutine's frame, and gives its result.
///
/// Affine: it takes the environment from the coroutine that awaits it, is cancelled by the environment's stop token
/// and resumes on the environment's executor. Where a stop was already requested nothing is started. It doesn't
/// suspend when the i/o completes at once, unless the loop's budget of such completions for this turn is used up.
/// Threads: the multiplexer's, or any of a context for several. Allocates: never; on a context for several threads, a
/// block from the pool where it waits. Source: D2052R0 4.2, coroutine-first i/o 5.
template <class Sender>
class [[nodiscard]] io_awaitable : private Sender::operation {
public:
    explicit io_awaitable(Sender const& sender) noexcept : Sender::operation(sender, nullptr) {}
    io_awaitable(io_awaitable const&) = delete;
    io_awaitable& operator=(io_awaitable const&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    bool await_suspend(std::coroutine_handle<> waiting, io_env const& env) noexcept {
        return this->template start_awaited<Sender::awaited_as>(waiting, env) !=
               io_status::completed;
    }

    static constexpr auto waits_for = wait_kind_of<Sender>;
    static constexpr bool takes_env_from_promise = true;
    template <carries_env Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiting) noexcept {
        return await_suspend(waiting, waiting.promise().env());
    }

    typename Sender::result_type await_resume() noexcept {
        typename Sender::result_type result = this->result();
        this->assume_done();
        return result;
    }
};

}  // namespace plumb
