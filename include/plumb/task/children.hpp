// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/io_env.hpp>
#include <plumb/exec/nested_stop_source.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/task/end_hook.hpp>
#include <plumb/task/promise_base.hpp>
#include <plumb/task/task.hpp>

#include <array>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb {

/// Tasks that one coroutine runs beside one another and awaits together, all to their ends. One of them can decide: then
/// the others are stopped, and those that have not begun don't.
///
/// The first begins at once, the rest through the executor's queue: so the threads of a pool take one each, and
/// tasks of any number and depth use constant stack.
///
/// States of a child: waits (owned by the node in the executor's queue, which starts one and queues itself again) ->
/// runs -> ended; or waits -> ended, if it was decided. The last to end, as `left_` counts, resumes the parent. What
/// ends a child requests the stop before it counts, so that nothing is touched when the parent goes on.
/// Threads: its executor's, all at once where that has several. Allocates: never.
class children : private work, private end_hook, public suspension {
public:
    enum class decided_by : std::uint8_t { first_failure, first_end };

    /// @param env  the parent's
    children(io_env const& env, decided_by what) noexcept
        : work(&children::start_posted),
          end_hook(&children::on_end),
          suspension(form::tasks),
          stop_(env),
          by_(what) {}
    children(children const&) = delete;
    children& operator=(children const&) = delete;

    struct child {
        std::coroutine_handle<> coroutine;
        promise_base* promise;
    };

    template <class T>
    static child of(task<T> const& t) noexcept {
        auto const c = t.coroutine();
        return {c, &c.promise()};
    }

    /// Awaits the end of all; their results stay in them. Once. They must be destroyed before this.
    template <std::size_t N>
    auto run(std::array<child, N> const& all) noexcept {
        return awaitable{*this, all.data(), N, sizeof(child),
                         [](void const* in, std::size_t i) noexcept {
                             return static_cast<child const*>(in)[i];
                         }};
    }
    template <class T>
    auto run(std::vector<task<T>> const& all) noexcept {
        return awaitable{*this, all.data(), all.size(), sizeof(task<T>),
                         [](void const* in, std::size_t i) noexcept {
                             return of(static_cast<task<T> const*>(in)[i]);
                         }};
    }

    /// How many there are, and the coroutine of one, or null where it doesn't run: for reports.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] async_frame const* running(std::size_t index) const noexcept {
        auto const [coroutine, promise] = at_(in_, index);
        return promise->launched() && !coroutine.done() ? promise : nullptr;
    }

    /// The index of the one that decided, or the number of all.
    [[nodiscard]] std::size_t decisive() const noexcept;

private:
    using child_function = child (*)(void const* in, std::size_t index) noexcept;

    struct awaitable {
        children& of;
        void const* in;
        std::size_t count;
        std::size_t stride;
        child_function at;

        [[nodiscard]] bool await_ready() const noexcept { return count == 0; }
        std::coroutine_handle<> await_suspend(awaiting h, io_env const&) noexcept {
            return of.begin(h, *this);
        }
        void await_resume() const noexcept {}
    };

    std::coroutine_handle<> begin(awaiting parent, awaitable const& what) noexcept;
    std::coroutine_handle<> start_next() noexcept;
    std::coroutine_handle<> count_down() noexcept;
    static void start_posted(work& self) noexcept;
    static std::coroutine_handle<> on_end(end_hook& self, promise_base& ended,
                                          bool failed) noexcept;

    nested_stop_source stop_;
    awaiting parent_;
    void const* in_ = nullptr;
    std::size_t count_ = 0;
    std::size_t stride_ = 0;  // each begins with its coroutine: for debuggers
    child_function at_ = nullptr;
    std::size_t started_ = 0;  // touched by whoever has the node
    std::atomic<std::size_t> left_{0};
    std::atomic<promise_base const*> decided_{nullptr};
    decided_by by_;
};

}  // namespace plumb
