// SPDX-License-Identifier: Apache-2.0
// What doesn't know its executor would resume anywhere.
// expect: plumb coroutines await affine awaitables: await_suspend(std::coroutine_handle<>, io_env const&)
#include <plumb/task/task.hpp>

#include <coroutine>

plumb::task<> wait() { co_await std::suspend_always(); }
