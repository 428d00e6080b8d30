// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace plumb {

class work_queue;
class work_inbox;

/// A node that can be queued once and run later: what executors and multiplexers are handed.
///
/// The owner keeps it alive until it has run; a node is in at most one queue at a time. It holds a function
/// pointer and no virtual functions, so that code built with and without RTTI can be mixed.
/// Derive from it and pass a function that casts back.
/// Threads: as the queue that holds it. Allocates: never. Source: coroutine-first i/o 4.2.
class work {
public:
    using function = void (*)(work&) noexcept;

    constexpr explicit work(function run) noexcept : run_(run) {}

    /// Runs it. The node may have been destroyed or queued again when this returns.
    void operator()() noexcept { run_(*this); }

    /// Whether running it calls `f`.
    [[nodiscard]] bool runs(function f) const noexcept { return run_ == f; }

private:
    friend work_queue;
    friend work_inbox;

    work* next_ = nullptr;
    function run_;
};

static_assert(sizeof(work) == 2 * sizeof(void*) && std::is_trivially_destructible_v<work>);

}  // namespace plumb
