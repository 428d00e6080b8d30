// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task_failure.hpp>

#include <plumb/base/assert.hpp>

#include <cstdio>
#include <string>

namespace plumb {
namespace {

// The exception that left a coroutine of this thread last, or was thrown to its awaiter: nothing but destructors runs
// until that catches it, or is left by it too. Kept alive, so that no other one has its address.
thread_local task_failure last;

}  // namespace

task_failure task_failure::current(async_frame const& left) noexcept {
    auto e = std::current_exception();
    if (last.exception_ != e) {
        task_failure made(std::move(e));
        made.stack_ = async_stacktrace(left);
        last = std::move(made);
    }
    return last;
}

void task_failure::rethrow() const {
    last = *this;
    std::rethrow_exception(exception_);
}

async_stacktrace async_stacktrace::of(std::exception_ptr const& e) noexcept {
    return e != nullptr && last.exception() == e ? last.stack() : async_stacktrace();
}

void task_failure::end_process() noexcept {
    try {
        auto const e = std::current_exception();
        std::fputs(async_stacktrace::of(e).to_string().c_str(), stderr);
        std::rethrow_exception(e);
    } catch (std::exception const& e) {
        std::fprintf(stderr, "plumb: %s\n", e.what());
    } catch (...) {
    }
    caller_bug(
        "an exception left a coroutine that was launched by async_run and that nobody awaits");
}

}  // namespace plumb
