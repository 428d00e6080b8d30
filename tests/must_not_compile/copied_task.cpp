// SPDX-License-Identifier: Apache-2.0
// A coroutine has one owner.
// expect: call to implicitly-deleted copy constructor of
// expect: use of deleted function
#include <plumb/task/task.hpp>

plumb::task<int> twice(plumb::task<int> const& t) {
    plumb::task<int> copy = t;
    co_return co_await std::move(copy);
}
