// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

#include "support/backend.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace plumb::test {

/// An `io_context` over a multiplexer of the kind that the test's name ends in.
class on_every_context : public on_every_backend {
protected:
    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            context_ = std::make_unique<io_context>(another());
        }
    }
    void TearDown() override { context_.reset(); }

    [[nodiscard]] io_context& context() noexcept { return *context_; }
    [[nodiscard]] io_context::executor_type const& executor() noexcept {
        return context_->get_executor();
    }
    void end_context() noexcept { context_.reset(); }

    /// Launches a task of no result. What it throws fails the test.
    void launch(task<> t, stop_token stop = {}) {
        async_run(executor(), std::move(t), stop,
                  [](task_result<void>& r) { EXPECT_NO_THROW(r.take()); });
    }

    /// Runs a task to its end on the context, and gives what it gives.
    template <class T>
    T run(task<T> t, stop_token stop = {}) {
        std::optional<task_result<T>> ended;
        async_run(executor(), std::move(t), stop, [&](task_result<T>& r) {
            ended.emplace(std::move(r));
            context_->stop();
        });
        (void)context_->run().value();
        if (!ended) {
            context_.reset();  // it may refer to what the test owns
            throw std::logic_error("the task never ended");
        }
        return ended->take();
    }

    /// Runs the context until it has nothing left to do.
    void run() { (void)context_->run().value(); }

private:
    std::unique_ptr<io_context> context_;
};

}  // namespace plumb::test
