// SPDX-License-Identifier: Apache-2.0
// A task that nobody awaits runs nothing.
// expect: ignoring return value of
// expect: ignoring returned value of
// expect: ignoring temporary
#pragma GCC diagnostic error "-Wunused-result"
#include <plumb/task/task.hpp>

plumb::task<> work() { co_return; }

plumb::task<> forgetful() {
    work();
    co_return;
}
