// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/atomic.hpp>
#include <plumb/exec/brief_lock.hpp>
#include <plumb/exec/work_queue.hpp>

#include "exec/work_deque.hpp"

#include <cstddef>
#include <memory>

namespace plumb {

/// What the threads of a pool take their work from, and where they sleep.
///
/// Each worker has a deque, and there is a common queue for what comes from elsewhere, what doesn't fit, what
/// gives way, and an item that was run 16 times in a row and posts itself again. A worker takes its own newest, then the oldest of the common
/// queue, then it searches: it steals the oldest of others. Every 64th time it looks into the common queue first, and
/// every 1024th takes its own oldest, so that nothing waits forever.
///
/// States of a worker: running -> searching -> running, or searching -> parked -> searching (woken). `parked_`, the
/// list of them and the phase are under `lock_`.
/// No work is left with all asleep: who posts looks for parked workers afterwards, and wakes one unless another is
/// searching; who parks looks for work afterwards; and so does the last searcher that has found some.
///
/// Phases: open -> joining (it ends by itself when nothing can come any more) -> ended, or open -> ended. Nothing can
/// come where all are parked, no work is counted and the common queue is empty: a worker parks with an empty deque, and only
/// workers fill deques.
/// Threads: any, and `work_here` one for each worker. Allocates: when it is made.
class pool_queues {
public:
    enum class phase : unsigned char { open, joining, ended };

    explicit pool_queues(std::size_t workers);
    pool_queues(pool_queues const&) = delete;
    pool_queues& operator=(pool_queues const&) = delete;
    ~pool_queues() = default;

    /// Fewer workers than it was made for will work. Before it is joined.
    void make_do_with(std::size_t workers) noexcept;

    void post(work& item) noexcept;
    /// To the common queue.
    void post_last(work& item) noexcept;
    void count_work(std::ptrdiff_t change) noexcept;
    /// Moves on to the phase.
    void go(phase to) noexcept;

    /// Runs work until the end.
    void work_here(std::size_t worker) noexcept;
    [[nodiscard]] bool running_in_this_thread() const noexcept;
    /// Whether this thread works for a pool, whichever.
    [[nodiscard]] static bool any_running_in_this_thread() noexcept;

    /// When no worker works: makes this thread count as inside while it lives, and gives what is left.
    class remains {
    public:
        explicit remains(pool_queues& of) noexcept;
        remains(remains const&) = delete;
        remains& operator=(remains const&) = delete;
        ~remains();
        /// @return null where nothing is left
        work* take() noexcept;

    private:
        pool_queues& of_;
        pool_queues const* outer_;
        void* outer_worker_;
    };

private:
    struct alignas(64) worker {
        work_deque queue;
        work* runs = nullptr;
        unsigned in_a_row = 0;  // how often that was run
        unsigned taken = 0;
        atomic<int> awake{1};
        bool parked = false;  // in the list
        worker* next_parked = nullptr;
    };

    [[nodiscard]] worker* here() const noexcept;
    [[nodiscard]] static bool gives_way(worker const& w, work const& item) noexcept;
    [[nodiscard]] bool ended() const noexcept { return phase_.load() == phase::ended; }
    [[nodiscard]] bool any_work() const noexcept;
    work* next(worker& w) noexcept;
    work* search(worker& w) noexcept;
    work* steal(worker& w) noexcept;
    work* take_common() noexcept;
    /// @return whether to go on searching; else it has ended
    bool park(worker& w) noexcept;
    void wake_one() noexcept;
    // Under the lock.
    void wake_one_locked() noexcept;
    void wake_all_locked() noexcept;
    void end_if_exhausted_locked() noexcept;

    std::size_t const count_;
    std::unique_ptr<worker[]> const workers_;
    alignas(64) atomic<int> searching_{0};
    atomic<int> parked_{0};  // written under the lock
    atomic<phase> phase_{phase::open};
    brief_lock lock_;
    worker* first_parked_ = nullptr;
    std::size_t working_;  // how many were started
    std::ptrdiff_t outside_work_ = 0;
    work_queue common_;
    atomic<std::size_t> in_common_{0};  // how many, written under the lock
};

}  // namespace plumb
