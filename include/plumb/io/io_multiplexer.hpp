// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/deadline.hpp>
#include <plumb/base/result.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/work.hpp>
#include <plumb/exec/work_inbox.hpp>
#include <plumb/exec/work_queue.hpp>
#include <plumb/io/io_operation.hpp>
#include <plumb/io/signal_work.hpp>
#include <plumb/io/timer_queue.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

namespace plumb {

/// How a multiplexer learns of readiness and completion.
enum class multiplexer_kind : std::uint8_t { epoll, io_uring, sim };

[[nodiscard]] std::string_view to_string(multiplexer_kind) noexcept;

/// What a multiplexer has done since it was made.
struct multiplexer_counters {
    /// Waits for events, blocking or not: one system call each.
    std::uint64_t turns = 0;
    /// Operations delivered, including those that a coroutine took directly.
    std::uint64_t completions = 0;
};

struct io_crew;

/// Completes i/o, expires deadlines and runs posted work, for any number of handles.
///
/// `complete_io`, `timeout_io`, `invoke_posted_items` and `run` return how many items they processed; a negative
/// number where something is pending but nothing was ready; 0 where nothing is pending. `max_items` bounds the
/// number (negative: no bound), `_within` forms the time spent working, `try_run…` forms the time spent waiting.
/// Receivers, posted work and coroutines are called from inside these functions, one at a time.
///
/// Threads: one at a time drives it, and that one starts and cancels operations, or any where they are `atomic_`; `post`
/// from any, `post(signal_work&)` also from signal handlers. Made for several threads, all functions may be called by
/// several at once: one leads, calls the receivers, and may start and cancel meanwhile; in `run` and
/// `invoke_posted_items` the rest run posted work at the same time, and wait to lead; the other functions return -1
/// while another leads. There, receivers and posted work don't call `run`, and 64 items of posted work are run in a row. Allocates: when it is made and when more handles register than ever before; never
/// between the start and the end of an operation. Source: D2052R0 4.3.1, 4.3.2.
class io_multiplexer {
public:
    /// Makes the best one that works on this machine, for one thread at a time, or for several at once.
    /// The environment variable PLUMB_MULTIPLEXER (epoll or io_uring) forces a kind, and fails where that can't be had.
    /// Errors: what the system gives; invalid_argument for an unknown name.
    static result<std::unique_ptr<io_multiplexer>> best_available(int threads) noexcept;

    /// Makes one of this kind. Errors: what the system gives, such as function_not_supported.
    static result<std::unique_ptr<io_multiplexer>> make(multiplexer_kind kind,
                                                        int threads = 1) noexcept;

    /// The one that this thread drives: of the `io_context` that runs on it, else the thread's own, which is made by
    /// `best_available(1)` on first use; terminates with a message where that fails. Not on a thread of a `thread_pool`,
    /// where nobody would drive it: terminates there too.
    static io_multiplexer& this_thread() noexcept;

    /// Cancels what is in flight and delivers nothing of it. Handles may outlive it and can only be closed then.
    ~io_multiplexer();
    io_multiplexer(io_multiplexer const&) = delete;
    io_multiplexer& operator=(io_multiplexer const&) = delete;

    /// The steady clock that deadlines count on, which is simulated in a simulated world.
    [[nodiscard]] static std::chrono::steady_clock::time_point steady_now() noexcept;

    [[nodiscard]] multiplexer_kind kind() const noexcept { return kind_; }
    [[nodiscard]] multiplexer_counters counters() const noexcept;

    /// Completes what is ready, without waiting. Cost: what is ready, not what is pending.
    result<int> complete_io(int max_items = -1) noexcept { return complete(max_items, no_end); }
    template <class Rep, class Period>
    result<int> complete_io_within(std::chrono::duration<Rep, Period> const& d,
                                   int max_items = -1) noexcept {
        return complete(max_items, end_of(d));
    }
    template <class Clock, class Duration>
    result<int> complete_io_within(std::chrono::time_point<Clock, Duration> const& t,
                                   int max_items = -1) noexcept {
        return complete(max_items, end_of(t));
    }

    /// Ends operations whose deadline is over, and timers. Cost: what is due, not what is pending.
    result<int> timeout_io(int max_items = -1) noexcept { return expire(max_items, no_end); }
    template <class Rep, class Period>
    result<int> timeout_io_within(std::chrono::duration<Rep, Period> const& d,
                                  int max_items = -1) noexcept {
        return expire(max_items, end_of(d));
    }
    template <class Clock, class Duration>
    result<int> timeout_io_within(std::chrono::time_point<Clock, Duration> const& t,
                                  int max_items = -1) noexcept {
        return expire(max_items, end_of(t));
    }

    /// Runs posted work. Work that is posted meanwhile runs in the next call.
    result<int> invoke_posted_items(int max_items = -1) noexcept {
        return invoke(max_items, no_end);
    }
    template <class Rep, class Period>
    result<int> invoke_posted_items_within(std::chrono::duration<Rep, Period> const& d,
                                           int max_items = -1) noexcept {
        return invoke(max_items, end_of(d));
    }
    template <class Clock, class Duration>
    result<int> invoke_posted_items_within(std::chrono::time_point<Clock, Duration> const& t,
                                           int max_items = -1) noexcept {
        return invoke(max_items, end_of(t));
    }

    /// All three, waiting until at least one item was processed. Returns 0 at once where nothing is pending, and at
    /// the latest when `wake` is called. Some of what is posted meanwhile runs before i/o is looked at again.
    result<int> run(int max_items = -1) noexcept { return run_until(deadline(), max_items); }
    result<int> try_run(int max_items = -1) noexcept {
        return run_until(std::chrono::nanoseconds(0), max_items);
    }
    template <class Rep, class Period>
    result<int> try_run_for(std::chrono::duration<Rep, Period> const& d,
                            int max_items = -1) noexcept {
        return run_until(d, max_items);
    }
    template <class Clock, class Duration>
    result<int> try_run_until(std::chrono::time_point<Clock, Duration> const& t,
                              int max_items = -1) noexcept {
        return run_until(t, max_items);
    }

    /// Queues `item` to be run by `invoke_posted_items` or `run`. Any thread. Never runs it inline; allocates nothing.
    void post(work& item) noexcept;
    /// Queues it once; posting it again before it has run does nothing. Also from signal handlers.
    void post(signal_work& item) noexcept;
    /// Queues a callable, for which it allocates. Errors: not_enough_memory.
    template <class F>
        requires(std::invocable<std::decay_t<F>&> && !std::derived_from<std::decay_t<F>, work> &&
                 !std::derived_from<std::decay_t<F>, signal_work>)
    result<void> post(F&& f) noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>);

    /// Ends the current or next wait in `run`. Any thread.
    void wake() noexcept;

    /// Counts something that will post later, for which `run` shall wait. Any thread.
    void work_started() noexcept { outside_work_.fetch_add(1); }
    void work_finished() noexcept;

private:
    friend io_operation;
    friend io_backend;
    friend operation_relay;
    friend class io_context;
    friend class io_errand;

    static constexpr std::int64_t no_end = INT64_MAX;
    static constexpr unsigned synchronous_completions_per_turn = 128;
    static constexpr int posted_per_turn = 64;  // at least: looking at i/o costs more than some

    io_multiplexer(multiplexer_kind kind) noexcept;

    static std::int64_t end_of(deadline d) noexcept;
    result<int> complete(int max_items, std::int64_t end) noexcept;
    result<int> expire(int max_items, std::int64_t end) noexcept;
    result<int> invoke(int max_items, std::int64_t end) noexcept;
    result<int> run_until(deadline limit, int max_items) noexcept;
    result<int> turn(int max_items) noexcept;
    result<int> wait_and_reap(std::int64_t end, int max_items, bool may_sleep) noexcept;

    // Of several threads.
    class leadership;
    result<int> take_turns(std::int64_t end, int max_items) noexcept;
    result<int> lead(std::int64_t end, int max_items, bool may_wait) noexcept;
    int work_a_while(int max_items, std::int64_t end) noexcept;
    void post_to_crew(work& item) noexcept;
    void forget_driver_outside() noexcept;
    bool begin_visit() noexcept;
    void end_visit() noexcept;
    [[nodiscard]] bool crew_needs_leader() noexcept;

    [[nodiscard]] bool is_inside() const noexcept;
    class outsider;
    /// Wakes the thread that drives.
    void call_driver() noexcept;
    /// Has the thread that drives run `item`, before anything else.
    void request(owned_work& item) noexcept;
    void fetch_requests() noexcept;

    inline io_status begin(io_operation& op) noexcept;
    std::int64_t begin_limit(io_operation& op) noexcept;
    template <io_operation::action A>
    inline std::int64_t start_io(io_operation& op, handle_slot& s) noexcept;
    inline std::int64_t start_io(io_operation& op) noexcept;
    template <io_operation::action A>
    inline std::int64_t try_now(io_operation& op, handle_slot& s) noexcept;
    inline std::int64_t try_now(io_operation& op) noexcept;
    std::int64_t try_pooled(io_operation& op) noexcept;
    static inline void note_read(handle_slot& s, std::int64_t done, std::size_t wanted,
                                 std::size_t count) noexcept;
    void watch_clock() noexcept;
    static std::int64_t clock_of(io_operation const& op) noexcept;
    inline void disarm(io_operation& op) noexcept;
    inline void enqueue(io_operation& op) noexcept;
    void unqueue(io_operation& op) noexcept;
    inline void deliver(io_operation& op) noexcept;
    inline void deliver_awaited(io_operation& op) noexcept;
    /// Of a pending operation, by the backend: it is over with this outcome.
    inline void settle(io_operation& op, std::int64_t outcome) noexcept;
    inline void settle_awaited(io_operation& op, std::int64_t outcome) noexcept;
    void settle_limited(io_operation& op, std::int64_t outcome) noexcept;
    void end_early(io_operation& op, io_operation::ending why) noexcept;
    int deliver_queued(int max_items, std::int64_t end) noexcept;
    int expire_timers(int max_items, std::int64_t end) noexcept;
    int run_posted(int max_items, std::int64_t end, int at_least) noexcept;
    [[nodiscard]] std::int64_t until_first_timer() const noexcept;
    [[nodiscard]] bool idle() const noexcept;
    [[nodiscard]] std::uint64_t taken_at_once() const noexcept;
    void renew_budget() noexcept;
    [[nodiscard]] bool past(std::int64_t end) const noexcept;
    class driving;
    void drop_posted() noexcept;
    void drive_here() noexcept;
    [[nodiscard]] inline bool driven_here() const noexcept;
    inline void check_driver() noexcept;
    void take_over() noexcept;

    std::unique_ptr<io_backend> backend_;
    timer_queue steady_timers_;
    timer_queue system_timers_;
    io_operation* queue_head_ = nullptr;
    io_operation* queue_tail_ = nullptr;
    io_operation* batch_last_ =
        nullptr;                // of those that are being delivered, the last in the queue
    std::int64_t pending_ = 0;  // operations in phase pending or queued
    unsigned first_stage_ = 0;  // of a run that is bounded in number
    unsigned budget_ = synchronous_completions_per_turn;
    multiplexer_kind kind_;
    multiplexer_counters counters_;
    std::atomic<void const*> driver_{nullptr};  // names the thread that drives it, or drove it last
    std::atomic<void const*> inside_{nullptr};  // the same while it does, else null
    work_queue posted_here_;                    // from inside
    work_inbox posted_;                         // by all others
    work_inbox requests_;                       // of operations that were started elsewhere
    std::unique_ptr<io_crew> crew_;             // null where it is for one thread
    std::atomic<std::int64_t> outside_work_{0};
    std::atomic<int> outsiders_{0};
    // Set by the driver before it sleeps, taken by whoever wakes it: at most one wake-up a sleep.
    std::atomic<bool> sleeping_{false};
    std::atomic<bool> woken_{false};
    native_handle clock_watch_ = no_native_handle;  // or minus an error
};

template <class F>
    requires(std::invocable<std::decay_t<F>&> && !std::derived_from<std::decay_t<F>, work> &&
             !std::derived_from<std::decay_t<F>, signal_work>)
result<void>
io_multiplexer::post(F&& f) noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    struct posted final : owned_work {
        explicit posted(F&& g)
            : owned_work([](owned_work& self, fate f) noexcept {
                  std::unique_ptr<posted> const owner(static_cast<posted*>(&self));
                  if (f == fate::run) {
                      owner->function();
                  }
              }),
              function(std::forward<F>(g)) {}
        std::decay_t<F> function;
    };
    auto* const item = new (std::nothrow) posted(std::forward<F>(f));
    if (item == nullptr) {
        return std::make_error_code(std::errc::not_enough_memory);
    }
    post(static_cast<work&>(*item));
    return {};
}

}  // namespace plumb
