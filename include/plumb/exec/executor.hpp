// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/work.hpp>

#include <concepts>
#include <coroutine>

namespace plumb {

/// Where coroutines and work run: a small value that names an execution context and does not own it.
///
/// - `dispatch(h)` returns the coroutine to resume next: `h` itself when the caller is already inside this
///   executor, else `std::noop_coroutine()` after `h` was posted. So `dispatch(h).resume()` is always right.
/// - `post(w)` queues work to run later, from any thread, without allocating and never inline.
/// - `==` tells whether two executors run work in the same place.
///
/// An executor may also have `running_in_this_thread()`: whether the caller is inside it now; `roots()`: a
/// pointer to the `root_list` of its context, which then owns the coroutines that are launched on it; and
/// `work_started()` with `work_finished()`: count what will post later, for which its context goes on running.
/// And `lasting()`: an equal one that lives as long as its context; and `concurrent()`: whether several threads may be
/// inside of it at once, as in a thread pool, which is the same for all equal ones; and `post_last(w)`, where `post` may
/// let newer work run first: queues it behind what is queued.
/// Source: coroutine-first i/o 3.
template <class T>
concept executor =
    std::copy_constructible<T> && requires(T const& t, std::coroutine_handle<> h, work* w) {
        { t.dispatch(h) } -> std::convertible_to<std::coroutine_handle<>>;
        t.post(w);
        { t == t } -> std::convertible_to<bool>;
    };

/// Posts for who gives way to others: behind what is queued, where `post` isn't that anyway.
template <executor E>
void post_last(E const& e, work* w) {
    if constexpr (requires { e.post_last(w); }) {
        e.post_last(w);
    } else {
        e.post(w);
    }
}

/// Whether several threads may be inside of `e` at once; false where its type doesn't say.
template <executor E>
[[nodiscard]] constexpr bool is_concurrent(E const& e) noexcept {
    if constexpr (requires { bool(e.concurrent()); }) {
        return e.concurrent();
    } else {
        return false;
    }
}

}  // namespace plumb
