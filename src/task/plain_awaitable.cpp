// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/plain_awaitable.hpp>

#include <plumb/exec/work.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/task/frame_allocation.hpp>

namespace plumb {

struct stand_in::made {
    using promise_type = stand_in::promise_type;
    std::coroutine_handle<> coroutine;
};

class stand_in::promise_type : public frame_allocation, private work {
public:
    promise_type(std::coroutine_handle<> waiting, io_env const& env) noexcept
        : work(&promise_type::go_on), waiting_(waiting), env_(&env), comes_(env.executor) {}

    made get_return_object() noexcept {
        return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
        struct hand_over {
            [[nodiscard]] bool await_ready() const noexcept { return false; }
            std::coroutine_handle<>
            await_suspend(std::coroutine_handle<promise_type> resumed) const noexcept {
                return resumed.promise().next();
            }
            void await_resume() const noexcept {}
        };
        return hand_over();
    }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept {}

private:
    std::coroutine_handle<> next() noexcept {
        if (env_->executor.running_in_this_thread()) {
            return waiting_;
        }
        env_->executor.post(this);  // the last touch
        return std::noop_coroutine();
    }
    static void go_on(work& w) noexcept { static_cast<promise_type&>(w).waiting_.resume(); }

    std::coroutine_handle<> waiting_;
    io_env const* env_;
    work_guard comes_;
};

stand_in::made stand_in::make(std::coroutine_handle<>, io_env const&) { co_return; }

std::coroutine_handle<> stand_in::begin(std::coroutine_handle<> waiting, io_env const& env) {
    coroutine_ = make(waiting, env).coroutine;
    return coroutine_;
}

}  // namespace plumb
