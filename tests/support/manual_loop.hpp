// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/exec/work_queue.hpp>
#include <plumb/task/async_run.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>

namespace plumb::test {

/// An executor without i/o: runs what is posted when the test says so. One thread.
class manual_loop {
public:
    class executor_type {
    public:
        explicit executor_type(manual_loop& loop) noexcept : loop_(&loop) {}
        [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
            if (loop_->running_) {
                return h;
            }
            loop_->queue_.push(*new resumption(h));
            return std::noop_coroutine();
        }
        void post(work* w) const noexcept {
            ++loop_->posts_;
            loop_->queue_.push(*w);
        }
        [[nodiscard]] bool running_in_this_thread() const noexcept { return loop_->running_; }
        [[nodiscard]] root_list* roots() const noexcept { return &loop_->roots_; }
        friend bool operator==(executor_type const&, executor_type const&) noexcept = default;

    private:
        manual_loop* loop_;
    };

    manual_loop() noexcept : executor_(*this) {}
    manual_loop(manual_loop const&) = delete;
    manual_loop& operator=(manual_loop const&) = delete;
    ~manual_loop() {
        drop();
        roots_.destroy_all();
        drop();
    }

    [[nodiscard]] executor_type const& get_executor() const noexcept { return executor_; }
    [[nodiscard]] root_list& roots() noexcept { return roots_; }
    [[nodiscard]] std::size_t posts() const noexcept { return posts_; }

    /// Runs until nothing is queued. @return how many items it ran
    std::size_t run() {
        std::size_t count = 0;
        bool const outer = std::exchange(running_, true);
        while (work* const item = queue_.pop()) {
            (*item)();
            ++count;
        }
        running_ = outer;
        return count;
    }

    /// Runs a task to its end, and gives what it gives.
    template <class T>
    T run(task<T> t, stop_token stop = {}) {
        std::optional<task_result<T>> ended;
        async_run(executor_, std::move(t), stop,
                  [&](task_result<T>& r) { ended.emplace(std::move(r)); });
        run();
        if (!ended) {
            roots_.destroy_all();
            throw std::logic_error("the task never ended");
        }
        return ended->take();
    }

private:
    struct resumption : owned_work {
        explicit resumption(std::coroutine_handle<> who) noexcept
            : owned_work([](owned_work& self, fate f) noexcept {
                  auto const h = static_cast<resumption&>(self).waiting;
                  delete static_cast<resumption*>(&self);
                  if (f == fate::run) {
                      h.resume();
                  }
              }),
              waiting(who) {}
        std::coroutine_handle<> waiting;
    };

    void drop() noexcept {
        while (work* const item = queue_.pop()) {
            owned_work::drop(*item);
        }
    }

    executor_type executor_;
    work_queue queue_;
    root_list roots_;
    std::size_t posts_ = 0;
    bool running_ = false;
};

static_assert(executor<manual_loop::executor_type>);

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
