// SPDX-License-Identifier: Apache-2.0
// What takes something else than the environment.
// expect: plumb coroutines await affine awaitables: await_suspend(std::coroutine_handle<>, io_env const&)
#include <plumb/task/task.hpp>

#include <coroutine>

struct takes_a_number {
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<>, int) {}
    void await_resume() {}
};

plumb::task<> wait() { co_await takes_a_number(); }
