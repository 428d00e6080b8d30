// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/children.hpp>
#include <plumb/task/task.hpp>
#include <plumb/task/task_range.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace plumb {

/// What stands for a task's result among others: `std::monostate` for none, `std::reference_wrapper` for a reference.
template <class T>
using value_among_others =
    std::conditional_t<std::is_void_v<T>, std::monostate,
                       std::conditional_t<std::is_reference_v<T>,
                                          std::reference_wrapper<std::remove_reference_t<T>>, T>>;

/// Takes the value of a task that has ended, or throws its exception.
template <class T>
value_among_others<T> take_among_others(task<T>& ended) {
    if constexpr (std::is_void_v<T>) {
        ended.take();
        return {};
    } else {
        return ended.take();
    }
}

/// Runs tasks beside one another and gives the values of all: `auto [a, b] = co_await when_all(f(), g());`. The first
/// one that fails stops the rest; all are awaited, then its exception is thrown. A stop request of the caller reaches
/// them all.
///
/// Cancel-safe: where no task fails, all values are given. Threads: the executor's; in a thread pool the tasks run at
/// once. Allocates: its frame, from the pool.
template <class... T>
task<std::tuple<value_among_others<T>...>> when_all(task<T>... given) {
    children all(co_await this_env(), children::decided_by::first_failure);
    std::tuple<task<T>...> tasks(std::move(given)...);  // they end before `all`
    std::array<children::child, sizeof...(T)> const list = std::apply(
        [](auto&... t) { return std::array<children::child, sizeof...(T)>{children::of(t)...}; },
        tasks);
    co_await all.run(list);
    if (std::size_t const failed = all.decisive(); failed != sizeof...(T)) {
        std::size_t i = 0;
        std::apply(
            [&](auto&... t) { ((i++ == failed ? void(take_among_others(t)) : void()), ...); },
            tasks);
    }
    co_return std::apply(
        [](auto&... t) { return std::tuple<value_among_others<T>...>{take_among_others(t)...}; },
        tasks);
}

/// The same for any number of tasks of one type: gives the vector of their values, in the order of the tasks.
/// Allocates: its frame, from the pool, and that vector.
template <class T>
task<std::vector<value_among_others<T>>> when_all(std::vector<task<T>> given) {
    children all(co_await this_env(), children::decided_by::first_failure);
    std::vector<task<T>> tasks = std::move(given);
    co_await all.run(tasks);
    if (std::size_t const failed = all.decisive(); failed != tasks.size()) {
        tasks[failed].take();
    }
    std::vector<value_among_others<T>> values;
    values.reserve(tasks.size());
    for (auto& t : tasks) {
        values.push_back(take_among_others(t));
    }
    co_return values;
}

/// The same for tasks that give nothing; gives nothing. Allocates: its frame, from the pool.
inline task<> when_all(std::vector<task<>> given) {
    children all(co_await this_env(), children::decided_by::first_failure);
    std::vector<task<>> tasks = std::move(given);
    co_await all.run(tasks);
    if (std::size_t const failed = all.decisive(); failed != tasks.size()) {
        tasks[failed].take();
    }
}

/// The same for the tasks of any range: `co_await when_all(ids | std::views::transform(fetch))`.
template <task_range R>
auto when_all(R&& given) {
    return when_all(tasks_of(std::forward<R>(given)));
}

}  // namespace plumb
