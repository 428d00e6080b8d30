// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/base/atomic.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/pooled_memory.hpp>
#include <plumb/exec/work_inbox.hpp>
#include <plumb/exec/work_queue.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace plumb {

/// What the copies of a strand share, but for the executor that it runs on: an item of that executor which runs a batch
/// of the strand's own.
///
/// States: idle -> posted (the push that finds nothing pending) -> running -> posted again (more is pending) or idle.
/// `pending_` counts what was pushed and has not been run to its end, so that it is zero in idle alone; only whoever
/// runs takes from the inbox and touches the queue. Counted: each copy holds one count, and posted or running one.
/// Threads: any. Allocates: itself, from the pool.
class strand_queue : public owned_work {
public:
    strand_queue(strand_queue const&) = delete;
    strand_queue& operator=(strand_queue const&) = delete;

    /// Makes a state that derives from this, with one count.
    template <class State, class... Args>
    static State* make(Args&&... args) {
        static_assert(alignof(State) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        void* const memory = pooled_allocate(sizeof(State));
        require(memory != nullptr, "no memory to make a strand");
        return ::new (memory) State(std::forward<Args>(args)...);
    }

    void retain() noexcept { references_.fetch_add(1); }
    void release() noexcept {
        if (references_.fetch_sub(1) == 1) {
            destroy_(*this);
        }
    }

    /// @return whether the caller is to post this
    [[nodiscard]] bool push(work& w) noexcept;
    [[nodiscard]] bool running_in_this_thread() const noexcept;

protected:
    using destroy_function = void (*)(strand_queue&) noexcept;

    strand_queue(end_function end, destroy_function destroy) noexcept
        : owned_work(end), destroy_(destroy) {}
    ~strand_queue() = default;

    /// @return whether the caller is to post this again
    [[nodiscard]] bool run_batch() noexcept;
    void drop_all() noexcept;

    template <class State>
    static void unmake(State& s) noexcept {
        std::destroy_at(&s);
        pooled_deallocate(&s, sizeof(State));
    }

private:
    static constexpr std::size_t batch = 64;

    destroy_function destroy_;
    atomic<std::size_t> pending_{0};
    atomic<std::size_t> references_{1};
    work_inbox inbox_;
    work_queue queue_;
};

}  // namespace plumb
