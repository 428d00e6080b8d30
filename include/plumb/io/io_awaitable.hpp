// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/io/io_operation.hpp>

#include <coroutine>

namespace plumb {

/// What `co_read`, `co_write` and their kin return: awaits a sender's operation, whose state lives in the
/// coroutine's frame, and gives its result.
///
/// Affine: it takes the environment from the coroutine that awaits it, is cancelled by the environment's stop token
/// and resumes on the environment's executor. Where a stop was already requested nothing is started. It doesn't
/// suspend when the i/o completes at once, unless the loop's budget of such completions for this turn is used up.
/// Threads: the multiplexer's. Allocates: never. Source: D2052R0 4.2, coroutine-first i/o 5.
template <class Sender>
class [[nodiscard]] io_awaitable : private Sender::operation {
public:
    explicit io_awaitable(Sender const& sender) noexcept
        : Sender::operation(sender, &io_awaitable::resume) {}
    io_awaitable(io_awaitable const&) = delete;
    io_awaitable& operator=(io_awaitable const&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }

    bool await_suspend(std::coroutine_handle<> waiting, io_env const& env) noexcept {
        waiting_ = waiting;
        env_ = &env;
        return this->template start_awaited<Sender::awaited_as>(env) == io_status::pending;
    }

    typename Sender::result_type await_resume() noexcept { return this->result(); }

private:
    static void resume(io_operation& done) noexcept {
        auto const& self =
            static_cast<io_awaitable&>(static_cast<typename Sender::operation&>(done));
        self.env_->executor.dispatch(self.waiting_).resume();
    }

    std::coroutine_handle<> waiting_;
    io_env const* env_ = nullptr;
};

}  // namespace plumb
