// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/task.hpp>

#include <concepts>
#include <optional>
#include <utility>

namespace plumb::aio {

/// Drives `context` until `done`, then stops what was launched beside the main task and waits for its end.
/// Throws `std::system_error`: resource_deadlock_would_occur where `done` can't come any more.
void drive(io_context& context, stop_source& rest, bool const& done);

/// Runs a task on a context and gives its result or throws its exception.
///
/// When the main task has ended, the tasks that were launched with its stop token are stopped, and `run` returns
/// when the context has nothing left to do; what waits then for something that can't happen is destroyed.
/// Throws `std::system_error` with resource_deadlock_would_occur where the main task waits so: it is stopped first.
/// Not from inside the context. Source: asyncio for C++20.
template <class T>
T run(io_context& context, task<T> main) {
    bool done = false;
    std::optional<task_result<T>> ended;
    stop_source stop(context.get_executor());
    async_run(context.get_executor(), std::move(main), stop.token(), [&](task_result<T>& r) {
        ended.emplace(std::move(r));
        done = true;
        context.stop();
    });
    drive(context, stop, done);
    return ended->take();
}

/// Runs a task on a context of its own over the best multiplexer.
template <class T>
T run(task<T> main) {
    io_context context;
    return run(context, std::move(main));
}

/// Calls `main`, which returns a task, and runs that; `main` and its captures live until all has ended.
template <std::invocable F>
decltype(auto) run(io_context& context, F main) {
    return run(context, main());
}
template <std::invocable F>
decltype(auto) run(F main) {
    io_context context;
    return run(context, main());
}

}  // namespace plumb::aio
