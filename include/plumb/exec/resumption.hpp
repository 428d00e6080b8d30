// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/work.hpp>

#include <coroutine>

namespace plumb {

/// A coroutine as work that resumes it once: what an executor queues where `dispatch` can't give the handle back.
/// Dropped with its queue, it resumes nobody.
/// Terminates where there is no memory. Threads: any. Allocates: one block, from the pool.
[[nodiscard]] work& make_resumption(std::coroutine_handle<> h) noexcept;

}  // namespace plumb
