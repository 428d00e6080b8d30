// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/children.hpp>
#include <plumb/task/task.hpp>
#include <plumb/task/task_range.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

namespace plumb {

/// What `when_any` gives: which task ended first, and all of them, ended, with what each of them has: a value or an
/// exception to be had by `take()` or `result()`, or nothing where it never began.
template <class Tasks>
struct first_of {
    std::size_t index;
    Tasks tasks;
};

/// Runs tasks beside one another until the first has ended, with a value or an exception, and stops the rest, which are
/// awaited: `auto [first, tasks] = co_await when_any(f(), g());`, then `std::get<0>(tasks).take()`. Nothing is lost:
/// another one that ended with a value before the stop reached it still has it. At least one task.
///
/// Cancel-safe: yes. Threads: the executor's; in a thread pool the tasks run at once. Allocates: its frame, from the
/// pool.
template <class... T>
    requires(sizeof...(T) > 0)
task<first_of<std::tuple<task<T>...>>> when_any(task<T>... given) {
    children all(co_await this_env(), children::decided_by::first_end);
    std::tuple<task<T>...> tasks(std::move(given)...);  // they end before `all`
    std::array<children::child, sizeof...(T)> const list = std::apply(
        [](auto&... t) { return std::array<children::child, sizeof...(T)>{children::of(t)...}; },
        tasks);
    co_await all.run(list);
    co_return {all.decisive(), std::move(tasks)};
}

/// The same for any number of tasks of one type; of none, the index is 0.
template <class T>
task<first_of<std::vector<task<T>>>> when_any(std::vector<task<T>> given) {
    children all(co_await this_env(), children::decided_by::first_end);
    std::vector<task<T>> tasks = std::move(given);
    co_await all.run(tasks);
    std::size_t const first = all.decisive();
    co_return {first, std::move(tasks)};
}

/// The same for the tasks of any range, such as a view that makes them.
template <task_range R>
auto when_any(R&& given) {
    return when_any(tasks_of(std::forward<R>(given)));
}

}  // namespace plumb
