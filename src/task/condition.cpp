// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/condition.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/task/with_stop.hpp>

namespace plumb {

/// Unlocks the mutex under the condition's lock, so that no notification falls between the two.
class condition::awaitable : private waiter {
public:
    awaitable(condition& c, mutex::held& held) noexcept
        : waiter(c.waiters_), condition_(c), held_(held) {}
    ~awaitable() {
        if (untaken()) {
            condition_.notify_one();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(awaiting h, io_env const& env) noexcept {
        return suspend(h, env, [this] {
            held_.unlock();
            return false;
        });
    }
    [[nodiscard]] bool await_resume() const noexcept { return granted(); }

private:
    condition& condition_;
    mutex::held& held_;
};

task<result<void>> condition::wait(mutex::held& held) {
    require(static_cast<bool>(held), "a condition was awaited without its mutex");
    mutex& m = *held.of();
    bool const notified = co_await awaitable(*this, held);
    if (!held) {
        auto again = co_await with_stop(stop_token(), m.lock());
        held = std::move(*again);
    }
    co_return notified ? result<void>() : std::errc::operation_canceled;
}

}  // namespace plumb
