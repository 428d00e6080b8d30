// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/async_run.hpp>
#include <plumb/task/stopped_by.hpp>

#include <concepts>
#include <future>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace plumb {

/// Launches a task as `async_run` does, for code that blocks: `async_future(pool.get_executor(), f()).get()`. The future
/// gives the value or throws the exception; where the executor's context ends before the task, `std::future_error` with
/// broken_promise.
/// @param stop  cancels the task; its source must outlive it
/// Threads: as `async_run`; the future is waited for on another. Allocates: the root's frame, from the pool, and what
/// std::promise does.
template <executor E, class T>
std::future<T> async_future(E where, task<T> what, stop_token stop = {}) {
    std::promise<T> told;
    std::future<T> future = told.get_future();
    async_run(std::move(where), std::move(what), stop,
              [told = std::move(told)](task_result<T>& ended) mutable {
                  if (ended.failed()) {
                      told.set_exception(ended.exception());
                  } else if constexpr (std::is_void_v<T>) {
                      told.set_value();
                  } else {
                      told.set_value(ended.take());
                  }
              });
    return future;
}

/// With the stop of the standard library; its source need not outlive the task.
template <executor E, class T, std::same_as<std::stop_token> Stop>
std::future<T> async_future(E where, task<T> what, Stop stop) {
    return async_future(std::move(where), stopped_by(std::move(stop), std::move(what)));
}

}  // namespace plumb
