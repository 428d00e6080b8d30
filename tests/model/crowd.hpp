// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>

#include "model/explorer.hpp"

#include <coroutine>
#include <deque>
#include <functional>

namespace plumb::model {

/// An executor of threads of the model.
struct crowd {
    class executor_type {
    public:
        [[nodiscard]] std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const noexcept {
            return h;
        }
        void post(work* w) const noexcept { of_->queue.push_back(w); }
        [[nodiscard]] static constexpr bool concurrent() noexcept { return true; }
        friend bool operator==(executor_type const&, executor_type const&) noexcept = default;

    private:
        friend crowd;
        explicit executor_type(crowd& c) noexcept : of_(&c) {}
        crowd* of_;
    };
    executor_type get_executor() noexcept { return executor_type(*this); }

    /// Runs what is posted until `over` holds.
    void work_until(std::function<bool()> const& over) {
        for (;;) {
            await([&] { return over() || !queue.empty(); });
            if (queue.empty()) {
                return;
            }
            work* const w = queue.front();
            queue.pop_front();
            (*w)();
        }
    }

    std::deque<work*> queue;
};

}  // namespace plumb::model
