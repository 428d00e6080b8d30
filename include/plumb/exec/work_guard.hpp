// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor_ref.hpp>

#include <utility>

namespace plumb {

/// While it lives, the context behind an executor goes on running, because something will come from elsewhere: another
/// thread that sets an event, or sends on a channel. Move-only.
/// Threads: any. Allocates: never.
class [[nodiscard]] work_guard {
public:
    /// @param context  its executor, or a reference to one; must outlive it
    explicit work_guard(executor_ref context) noexcept : context_(context) {
        context_.work_started();
    }
    work_guard(work_guard&& other) noexcept : context_(std::exchange(other.context_, {})) {}
    work_guard& operator=(work_guard&& other) noexcept {
        std::swap(context_, other.context_);
        return *this;
    }
    ~work_guard() { reset(); }

    /// What was to come has come.
    void reset() noexcept { std::exchange(context_, {}).work_finished(); }

private:
    executor_ref context_;
};

}  // namespace plumb
