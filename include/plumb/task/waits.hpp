// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/root_list.hpp>
#include <plumb/task/async_frame.hpp>

#include <concepts>
#include <cstdio>
#include <source_location>
#include <string>

namespace plumb {

/// What a coroutine waits for that awaits no other coroutine.
struct wait_description {
    /// "read", "time", "mutex", ...; "its start"; "unknown" for the awaitables of others.
    char const* what;
    /// The primitive, or null.
    void const* of = nullptr;
    /// Where whoever has a mutex has awaited it.
    std::source_location held_since = {};
};

/// Of a coroutine that `visit_waits` has found. Of one that isn't suspended, such as the caller, or one that is about to go
/// on, it tells what it awaited last.
[[nodiscard]] wait_description wait_of(async_frame const& innermost) noexcept;

using visit_wait_function = void (*)(void* context, async_frame const& root,
                                     async_frame const& innermost);
void visit_waits(root_list const& roots, visit_wait_function visit, void* context);

/// Calls `visit(root, innermost)` for each coroutine that a context's roots have come to in the end: one for each root, or
/// several where it awaits several tasks. From `innermost` on, `awaiter` leads to the root. A task that runs on another
/// executor is not followed.
/// Threads: the context's; where it has several, while none of them runs. Allocates: never.
template <std::invocable<async_frame const&, async_frame const&> F>
void visit_waits(root_list const& roots, F visit) {
    visit_waits(
        roots,
        [](void* f, async_frame const& root, async_frame const& innermost) {
            (*static_cast<F*>(f))(root, innermost);
        },
        &visit);
}

/// Who waits for what, and where: the stack of each coroutine that `visit_waits` finds.
[[nodiscard]] std::string waits_to_string(root_list const& roots);
void print_waits(root_list const& roots, std::FILE* to = stderr);

}  // namespace plumb
