// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/manual_executor.hpp>
#include <plumb/task/async_run.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <optional>
#include <stdexcept>
#include <utility>

namespace plumb::test {

/// A `manual_executor` that also runs a task to its end.
class manual_loop : public manual_executor {
public:
    using manual_executor::run;

    /// Gives what the task gives.
    template <class T>
    T run(task<T> t, stop_token stop = {}) {
        std::optional<task_result<T>> ended;
        async_run(get_executor(), std::move(t), stop,
                  [&](task_result<T>& r) { ended.emplace(std::move(r)); });
        run();
        if (!ended) {
            roots().destroy_all();
            throw std::logic_error("the task never ended");
        }
        return ended->take();
    }
};

/// Suspends whoever awaits it until the test resumes it.
class gate {
public:
    /// Resumes the waiter. @return whether there was one
    bool open() {
        if (!waiting_) {
            return false;
        }
        std::exchange(waiting_, nullptr).resume();
        return true;
    }
    [[nodiscard]] bool awaited() const noexcept { return static_cast<bool>(waiting_); }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h, io_env const&) noexcept { waiting_ = h; }
    void await_resume() const noexcept {}

private:
    std::coroutine_handle<> waiting_;
};

/// Counts the objects of a test that are alive.
class counted {
public:
    explicit counted(int& alive) noexcept : alive_(&alive) { ++*alive_; }
    counted(counted const& other) noexcept : counted(*other.alive_) {}
    counted& operator=(counted const&) = delete;
    ~counted() { --*alive_; }

private:
    int* alive_;
};

}  // namespace plumb::test
