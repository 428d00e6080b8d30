// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/task.hpp>

#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace plumb {

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

template <class R>
using element_of = decltype(*std::begin(std::declval<R&>()));

/// Tasks of one type that are given away: a view that makes them, such as `ids | std::views::transform(fetch)`, or a
/// container that is moved. No view of what somebody else keeps.
template <class R>
concept task_range =
    is_task<std::remove_cvref_t<element_of<R>>> &&
    (!std::is_reference_v<element_of<R>> || (!std::is_reference_v<R> && requires(R& container) {
        requires !std::is_const_v<std::remove_reference_t<element_of<R>>>;
        container.max_size();
    }));

/// Takes the tasks out of a range. Allocates: the vector.
template <task_range R>
std::vector<std::remove_cvref_t<element_of<R>>> tasks_of(R&& given) {
    std::vector<std::remove_cvref_t<element_of<R>>> tasks;
    for (auto&& t : given) {
        tasks.push_back(std::move(t));
    }
    return tasks;
}

}  // namespace plumb
