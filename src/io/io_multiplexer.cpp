// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_multiplexer.hpp>

#include <plumb/base/assert.hpp>

#include "io/io_crew.hpp"
#include "io/io_errand.hpp"
#include "io/io_lifecycle.hpp"
#include "io/io_uring_backend.hpp"
#include "io/readiness_backend.hpp"
#include "io/this_thread.hpp"
#include "platform/seam.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

namespace plumb {
namespace {

constexpr bool reached(int count, int max_items) noexcept {
    return max_items >= 0 && count >= max_items;
}

void forget_errand(io_operation& op) noexcept {
    if (io_errand::carries(op)) {
        io_errand::forget(op);
    }
}

constexpr int left(int count, int max_items) noexcept {
    return max_items < 0 ? -1 : max_items - count;
}

}  // namespace

std::string_view to_string(multiplexer_kind kind) noexcept {
    switch (kind) {
    case multiplexer_kind::epoll:
        return "epoll";
    case multiplexer_kind::io_uring:
        return "io_uring";
    case multiplexer_kind::sim:
        return "sim";
    }
    return "unknown";
}

io_multiplexer::io_multiplexer(multiplexer_kind kind) noexcept : kind_(kind) {}

result<std::unique_ptr<io_multiplexer>> io_multiplexer::make(multiplexer_kind kind,
                                                             int threads) noexcept {
    bool const simulated = platform::os().simulated;
    if (simulated) {
        kind = multiplexer_kind::sim;  // a simulated system's handles mean nothing to the real one
    } else if (kind == multiplexer_kind::sim) {
        return std::make_error_code(std::errc::not_supported);
    }
    std::unique_ptr<io_multiplexer> made(new (std::nothrow) io_multiplexer(kind));
    if (made == nullptr) {
        return std::make_error_code(std::errc::not_enough_memory);
    }
    if (threads > 1) {
        made->crew_.reset(new (std::nothrow) io_crew);
        if (made->crew_ == nullptr) {
            return std::make_error_code(std::errc::not_enough_memory);
        }
    }
    auto backend = kind == multiplexer_kind::io_uring
                       ? platform::make_io_uring_backend(*made, threads > 1)
                       : make_readiness_backend(*made);
    if (!backend) {
        return backend.error();
    }
    made->backend_ = std::move(*backend);
    return made;
}

result<std::unique_ptr<io_multiplexer>> io_multiplexer::best_available(int threads) noexcept {
    if (char const* const forced = std::getenv("PLUMB_MULTIPLEXER");
        forced != nullptr && *forced != '\0') {
        for (auto const kind : {multiplexer_kind::epoll, multiplexer_kind::io_uring}) {
            if (forced == to_string(kind)) {
                return make(kind, threads);
            }
        }
        return std::make_error_code(std::errc::invalid_argument);
    }
    if (auto ring = make(multiplexer_kind::io_uring, threads)) {
        return ring;
    }
    return make(multiplexer_kind::epoll, threads);
}

/// Keeps the multiplexer while another thread than the driving one is in it: what that has posted may lead to the end.
class io_multiplexer::outsider {
public:
    explicit outsider(io_multiplexer& m) noexcept : m_(m) { m_.outsiders_.fetch_add(1); }
    outsider(outsider const&) = delete;
    outsider& operator=(outsider const&) = delete;
    ~outsider() { m_.outsiders_.fetch_sub(1); }

private:
    io_multiplexer& m_;
};

io_multiplexer::~io_multiplexer() {
    while (outsiders_.load() != 0) {
        std::this_thread::yield();
    }
    drive_here();
    for (auto requested = requests_.take(); work* const item = requested.pop();) {
        owned_work::drop(*item);
    }
    sleeping_.store(false);  // whoever still ends something has nobody to wake
    // The backend forgets the handles, which ends what is in flight there; what waits here is told to nobody either.
    backend_.reset();
    if (clock_watch_ >= 0) {
        platform::os().close(clock_watch_);
    }
    for (auto* timers : {&steady_timers_, &system_timers_}) {
        while (timers->first() != nullptr) {
            io_operation& op = static_cast<io_operation&>(*timers->first());
            disarm(op);
            op.leave();
            forget_errand(op);
            op.state_.now = io_operation::phase::done;
            op.outcome_ = platform::failed_with(std::errc::operation_canceled);
        }
    }
    while (queue_head_ != nullptr) {
        io_operation& op = *queue_head_;
        unqueue(op);
        forget_errand(op);
        op.state_.now = io_operation::phase::done;
    }
    drop_posted();
}

void io_multiplexer::drop_posted() noexcept {
    // What is dropped may post when it is destroyed.
    for (;;) {
        posted_here_.splice(posted_.take());
        if (crew_ != nullptr) {
            posted_here_.splice(std::move(crew_->ready));
            posted_here_.splice(std::move(crew_->posted));
        }
        if (posted_here_.empty()) {
            return;
        }
        while (work* const item = posted_here_.pop()) {
            owned_work::drop(*item);
        }
    }
}

void io_multiplexer::drive_here() noexcept {
    driver_.store(this_thread_token(), std::memory_order_relaxed);
}

void io_multiplexer::take_over() noexcept {
    bool const in_use = crew_ != nullptr && crew_->in_use();
    require(driver_.load(std::memory_order_relaxed) == nullptr && !in_use,
            "an i/o operation was started, cancelled or destroyed on another thread than the one "
            "that drives "
            "its multiplexer");
    drive_here();
}

bool io_multiplexer::past(std::int64_t end) const noexcept {
    return end != no_end && platform::os().steady_now() >= end;
}

std::int64_t io_multiplexer::end_of(deadline d) noexcept {
    if (d.is_infinite()) {
        return no_end;
    }
    auto const& os = platform::os();
    auto const steady = os.steady_now();
    if (!d.is_system()) {
        return d.due_after(steady);
    }
    auto const now = os.system_now();
    return deadline(std::chrono::nanoseconds(std::max<std::int64_t>(d.due_after(now) - now, 0)))
        .due_after(steady);
}

bool io_multiplexer::idle() const noexcept {
    // Outside work first: who finishes it has posted before.
    return pending_ == 0 && posted_here_.empty() && outside_work_.load() == 0 && posted_.empty() &&
           requests_.empty();
}

std::chrono::steady_clock::time_point io_multiplexer::steady_now() noexcept {
    return std::chrono::steady_clock::time_point(
        std::chrono::nanoseconds(platform::os().steady_now()));
}

multiplexer_counters io_multiplexer::counters() const noexcept {
    auto counted = counters_;
    counted.completions += taken_at_once();
    return counted;
}

/// How many of the turn's operations a coroutine took at once: the budget counts them.
std::uint64_t io_multiplexer::taken_at_once() const noexcept {
    return synchronous_completions_per_turn - budget_;
}

void io_multiplexer::renew_budget() noexcept {
    counters_.completions += taken_at_once();
    budget_ = synchronous_completions_per_turn;
}

// Operations.

std::int64_t io_multiplexer::try_pooled(io_operation& op) noexcept {
    // The memory is taken when there is data, as far as is known, so that what waits holds none.
    std::size_t const most = op.request_.read.bytes();
    auto block = pooled_buffer::with_capacity(most);
    if (block.capacity() != most) {
        return platform::failed_with(std::errc::not_enough_memory);
    }
    handle_slot& s = *op.slot_;
    buffer const room = block.room();
    auto const done = most == 0 ? 0 : platform::os().read(s.native, s.kind, &room, 1);
    note_read(s, done, most, 1);
    if (done > 0) {
        op.request_.read = room;
        (void)block.release();
    }
    return done;
}

std::int64_t io_multiplexer::begin_limit(io_operation& op) noexcept {
    auto const now = op.limit().is_zero() ? 0 : clock_of(op);
    auto const due = op.limit().due_after(now);
    if (due > now) {
        if (op.limit().is_system() && clock_watch_ == no_native_handle) {
            watch_clock();
        }
        (op.limit().is_system() ? system_timers_ : steady_timers_).insert(op, due);
        return platform::failed_with(std::errc::resource_unavailable_try_again);
    }
    if (op.state_.what == io_operation::action::wait) {
        return 0;
    }
    op.state_.now = io_operation::phase::pending;
    op.ending_ = io_operation::ending::timed_out;
    return backend_->cancel(op);
}

/// Makes waits for a time of the system clock follow its jumps, where the system tells of them.
void io_multiplexer::watch_clock() noexcept {
    clock_watch_ = platform::os().open_clock_watch();
    if (clock_watch_ >= 0) {
        backend_->end_waits_by(clock_watch_);
    }
}

std::int64_t io_multiplexer::clock_of(io_operation const& op) noexcept {
    auto const& os = platform::os();
    return op.limit().is_system() ? os.system_now() : os.steady_now();
}

void io_multiplexer::unqueue(io_operation& op) noexcept {
    auto const [previous, next] = op.queue_;
    (previous != nullptr ? previous->queue_.next : queue_head_) = next;
    (next != nullptr ? next->queue_.previous : queue_tail_) = previous;
    if (batch_last_ == &op) {
        batch_last_ = previous;
    }
    --pending_;
}

void io_multiplexer::settle_limited(io_operation& op, std::int64_t outcome) noexcept {
    disarm(op);
    op.leave();
    op.settle_outcome(outcome);
    --pending_;
    deliver(op);
}

void io_backend::settle_later(io_operation& op, outcome o) noexcept {
    owner_.disarm(op);
    op.leave();
    op.settle_outcome(o);
    owner_.enqueue(op);
}

void io_backend::await_release_of(zero_copy_operation& op) noexcept {
    op.multiplexer_->check_driver();
    op.multiplexer_->backend_->await_release(op);
}

void io_backend::hold(zero_copy_operation& op) noexcept {
    op.held_ = true;
    ++owner_.pending_;
}

void io_backend::release(zero_copy_operation& op) noexcept {
    op.held_ = false;
    // Its result comes first.
    if (!op.state_.told || op.state_.now != io_operation::phase::done) {
        --owner_.pending_;
        return;
    }
    if (op.awaited_) {
        op.leave();
        op.awaited_ = false;
    }
    owner_.enqueue(op);
}

void io_backend::call_driver() noexcept { owner_.call_driver(); }

void io_multiplexer::end_early(io_operation& op, io_operation::ending why) noexcept {
    if (op.ending_ != io_operation::ending::natural) {
        return;
    }
    op.ending_ = why;
    disarm(op);
    auto const outcome = op.state_.what == io_operation::action::wait
                             ? platform::failed_with(std::errc::operation_canceled)
                             : backend_->cancel(op);
    if (outcome == platform::failed_with(std::errc::resource_unavailable_try_again)) {
        return;
    }
    op.leave();
    op.settle_outcome(outcome);
    enqueue(op);
}

// Driving.

/// Makes this thread the one that drives. What it posts from inside needs no synchronisation; once it is outside,
/// another thread may drive.
class io_multiplexer::driving {
public:
    explicit driving(io_multiplexer& m) noexcept
        : m_(m), outer_(m.inside_.load(std::memory_order_relaxed)) {
        m_.drive_here();
        m_.inside_.store(this_thread_token(), std::memory_order_relaxed);
    }
    driving(driving const&) = delete;
    driving& operator=(driving const&) = delete;
    ~driving() {
        m_.inside_.store(outer_, std::memory_order_relaxed);
        if (m_.crew_ != nullptr && outer_ == nullptr) {
            m_.driver_.store(nullptr, std::memory_order_relaxed);  // nobody, until the next leads
        }
    }

private:
    io_multiplexer& m_;
    void const* const outer_;
};

/// Makes this thread the leader, unless another is. Of a multiplexer for one thread each is.
class io_multiplexer::leadership {
public:
    explicit leadership(io_multiplexer& m) noexcept
        : crew_(m.is_inside() ? nullptr : m.crew_.get()) {
        if (crew_ != nullptr) {
            std::scoped_lock const lock(crew_->mutex);
            held_ = !std::exchange(crew_->led, true);
        }
    }
    leadership(leadership const&) = delete;
    leadership& operator=(leadership const&) = delete;
    ~leadership() {
        if (crew_ != nullptr && held_) {
            std::scoped_lock const lock(crew_->mutex);
            crew_->end_lead();
        }
    }

    [[nodiscard]] bool held() const noexcept { return held_; }

private:
    io_crew* const crew_;
    bool held_ = true;
};

int io_multiplexer::deliver_queued(int max_items, std::int64_t end) noexcept {
    int count = 0;
    // What a receiver queues again waits for the next turn, so that one operation can't starve the others.
    batch_last_ = queue_tail_;
    while (batch_last_ != nullptr && !reached(count, max_items) && !past(end)) {
        io_operation& op = *queue_head_;
        unqueue(op);
        deliver(op);
        ++count;
    }
    batch_last_ = nullptr;
    return count;
}

int io_multiplexer::expire_timers(int max_items, std::int64_t end) noexcept {
    int count = 0;
    auto const expire_from = [&](timer_queue& timers, std::int64_t now) {
        while (timers.first() != nullptr && timers.first()->due() <= now &&
               !reached(count, max_items) && !past(end)) {
            io_operation& op = static_cast<io_operation&>(*timers.first());
            if (op.state_.what == io_operation::action::wait) {
                settle(op, 0);
                ++count;
                continue;
            }
            end_early(op, io_operation::ending::timed_out);
            if (op.state_.now == io_operation::phase::queued) {
                unqueue(op);
                deliver(op);
                ++count;
            }
        }
    };
    if (!steady_timers_.empty()) {
        expire_from(steady_timers_, platform::os().steady_now());
    }
    if (!system_timers_.empty()) {
        expire_from(system_timers_, platform::os().system_now());
    }
    return count;
}

/// What was posted before, and of what is posted meanwhile as much as makes that `at_least` items in all.
int io_multiplexer::run_posted(int max_items, std::int64_t end, int at_least) noexcept {
    if (!posted_.empty()) {
        posted_here_.splice(posted_.take());
    }
    int count = 0;
    work_queue batch;
    do {
        batch.splice(std::move(posted_here_));
        while (!batch.empty() && !reached(count, max_items) && !past(end)) {
            (*batch.pop())();
            ++count;
        }
    } while (batch.empty() && !posted_here_.empty() && count < at_least);
    batch.splice(std::move(posted_here_));
    posted_here_.splice(std::move(batch));
    return count;
}

bool io_multiplexer::is_inside() const noexcept {
    return inside_.load(std::memory_order_relaxed) == this_thread_token();
}

void io_multiplexer::call_driver() noexcept {
    if (sleeping_.exchange(false)) {
        backend_->wake();
    }
}

void io_multiplexer::request(owned_work& item) noexcept {
    outsider const here(*this);
    requests_.push(item);
    call_driver();
}

void io_multiplexer::fetch_requests() noexcept {
    if (requests_.empty()) [[likely]] {
        return;
    }
    check_driver();
    for (auto requested = requests_.take(); work* const item = requested.pop();) {
        (*item)();
    }
}

result<int> io_multiplexer::invoke(int max_items, std::int64_t end) noexcept {
    if (crew_ != nullptr && !is_inside()) {
        std::scoped_lock const lock(crew_->mutex);
        forget_driver_outside();
        crew_->posted.splice(posted_.take());  // a signal's
        int const count = work_a_while(max_items, end);
        return count == 0 && (crew_->led || crew_->has_work() || pending_ != 0) ? -1 : count;
    }
    driving const here(*this);
    fetch_requests();
    int const count = run_posted(max_items, end, 0);
    if (count == 0 && (pending_ != 0 || !posted_here_.empty() || !posted_.empty())) {
        return -1;
    }
    return count;
}

result<int> io_multiplexer::expire(int max_items, std::int64_t end) noexcept {
    leadership const first(*this);
    if (!first.held()) {
        return -1;
    }
    driving const here(*this);
    fetch_requests();
    int const count = expire_timers(max_items, end);
    if (count == 0 && pending_ != 0) {
        return -1;
    }
    return count;
}

result<int> io_multiplexer::complete(int max_items, std::int64_t end) noexcept {
    leadership const first(*this);
    if (!first.held()) {
        return -1;
    }
    driving const here(*this);
    fetch_requests();
    renew_budget();
    int count = 0;
    // Where the number is bounded, what is queued and what is ready take turns at being first.
    bool const ready_first = max_items >= 0 && first_stage_++ % 2 != 0;
    if (!ready_first) {
        count = deliver_queued(max_items, end);
    }
    if (!reached(count, max_items) && !past(end) && pending_ != 0) {
        ++counters_.turns;
        auto const reaped = backend_->reap(0, left(count, max_items));
        if (reaped < 0) {
            return platform::error_of(reaped);
        }
        count += static_cast<int>(reaped);
    }
    if (ready_first && !reached(count, max_items)) {
        count += deliver_queued(left(count, max_items), end);
    }
    if (count == 0 && pending_ != 0) {
        return -1;
    }
    return count;
}

std::int64_t io_multiplexer::until_first_timer() const noexcept {
    auto wait = platform::forever;
    auto const consider = [&](timer_queue const& timers, std::int64_t now) {
        if (timers.first() != nullptr && timers.first()->due() != no_end) {
            auto const time = std::max<std::int64_t>(timers.first()->due() - now, 0);
            wait = wait < 0 ? time : std::min(wait, time);
        }
    };
    if (!steady_timers_.empty()) {
        consider(steady_timers_, platform::os().steady_now());
    }
    if (!system_timers_.empty()) {
        consider(system_timers_, platform::os().system_now());
    }
    return wait;
}

/// What needs no waiting. @return how many
result<int> io_multiplexer::turn(int max_items) noexcept {
    renew_budget();
    fetch_requests();
    int count = 0;
    // Where the number is bounded, each stage is the first in turn, so that none starves.
    unsigned const first = max_items < 0 ? 0 : first_stage_++;
    for (unsigned i = 0; i < 4 && !reached(count, max_items); ++i) {
        switch ((first + i) % 4) {
        case 0:
            count += run_posted(left(count, max_items), no_end, posted_per_turn);
            break;
        case 1:
            count += deliver_queued(left(count, max_items), no_end);
            break;
        case 2:
            count += expire_timers(left(count, max_items), no_end);
            break;
        case 3:  // last by itself, where it may wait
            if (i == 0 && pending_ != 0) {
                ++counters_.turns;
                auto const reaped = backend_->reap(0, max_items);
                if (reaped < 0) {
                    return platform::error_of(reaped);
                }
                count += static_cast<int>(reaped);
            }
            break;
        }
    }
    return count;
}

result<int> io_multiplexer::wait_and_reap(std::int64_t end, int max_items,
                                          bool may_sleep) noexcept {
    auto timeout = may_sleep ? until_first_timer() : 0;
    if (may_sleep && end != no_end) {
        auto const remaining = std::max<std::int64_t>(end - platform::os().steady_now(), 0);
        timeout = timeout < 0 ? remaining : std::min(timeout, remaining);
    }
    if (timeout != 0) {
        sleeping_.store(true);
        if (!posted_.empty() || !requests_.empty() || woken_.load() || crew_needs_leader()) {
            timeout = 0;
            sleeping_.store(false);
        }
    }
    ++counters_.turns;
    auto const reaped = backend_->reap(timeout, max_items);
    if (timeout != 0) {
        sleeping_.store(false);
    }
    if (reaped < 0) {
        return platform::error_of(reaped);
    }
    return static_cast<int>(reaped);
}

result<int> io_multiplexer::run_until(deadline limit, int max_items) noexcept {
    std::int64_t const end = end_of(limit);
    if (crew_ != nullptr) {
        require(!is_inside(), "a multiplexer for several threads was run from inside a receiver");
        return take_turns(end, max_items);
    }
    driving const here(*this);
    for (;;) {
        auto const done = turn(max_items);
        if (!done) {
            return done;
        }
        int count = *done;
        if (idle()) {
            return count;
        }
        if (reached(count, max_items)) {
            return count != 0 ? count : -1;
        }
        bool const may_sleep = count == 0 && queue_head_ == nullptr && posted_here_.empty();
        auto const reaped = wait_and_reap(end, left(count, max_items), may_sleep);
        if (!reaped) {
            return reaped;
        }
        count += *reaped;
        if (count > 0) {
            return count;
        }
        if (woken_.exchange(false)) {
            return idle() ? 0 : -1;
        }
        if (past(end) && posted_.empty() && until_first_timer() != 0) {
            return -1;
        }
    }
}

// Several threads.

result<int> io_multiplexer::take_turns(std::int64_t end, int max_items) noexcept {
    io_crew& crew = *crew_;
    int count = 0;
    std::unique_lock lock(crew.mutex);
    forget_driver_outside();
    bool works = max_items <= 0 || (crew.leads_first = !crew.leads_first);
    for (;; works = true) {
        if (works) {
            int const most = left(count, max_items);
            count += work_a_while(
                most < 0 ? io_crew::most_at_once : std::min(most, io_crew::most_at_once), no_end);
        }
        if (reached(count, max_items)) {
            return count != 0 ? count : -1;
        }
        if (!crew.led && crew.visitors == 0) {
            crew.led = true;
            lock.unlock();
            auto const done = lead(end, left(count, max_items), count == 0);
            lock.lock();
            bool const over = idle() && !crew.has_work() && crew.working == 0;
            crew.end_lead();
            if (!done) {
                return done;
            }
            count += *done;
            if (count > 0 || over) {
                return count;
            }
            if (woken_.exchange(false) || (past(end) && !crew.has_work())) {
                return -1;
            }
            continue;
        }
        if (count > 0) {
            return count;
        }
        auto const left_to_wait = end == no_end ? -1 : end - platform::os().steady_now();
        if (end != no_end && left_to_wait <= 0) {
            return -1;
        }
        crew.wait(lock, left_to_wait);
    }
}

result<int> io_multiplexer::lead(std::int64_t end, int max_items, bool may_wait) noexcept {
    driving const here(*this);
    auto const done = turn(max_items);
    if (!done || reached(*done, max_items)) {
        return done;
    }
    bool const may_sleep = may_wait && *done == 0 && queue_head_ == nullptr;
    auto const reaped = wait_and_reap(end, left(*done, max_items), may_sleep);
    if (!reaped) {
        return reaped;
    }
    return *done + *reaped;
}

/// Runs work that was posted before, with the crew's lock given up meanwhile. @return how many
int io_multiplexer::work_a_while(int max_items, std::int64_t end) noexcept {
    io_crew& crew = *crew_;
    if (crew.ready.empty()) {
        crew.ready.splice(std::move(crew.posted));
    }
    int count = 0;
    while (!reached(count, max_items) && !past(end)) {
        work* const item = crew.ready.pop();
        if (item == nullptr) {
            break;
        }
        ++crew.working;
        crew.mutex.unlock();
        (*item)();
        crew.mutex.lock();
        --crew.working;
        ++count;
    }
    if (crew.leader_waits_for_work && crew.working == 0 && !crew.has_work()) {
        call_driver();
    }
    return count;
}

void io_multiplexer::post_to_crew(work& item) noexcept {
    outsider const here(*this);
    std::scoped_lock const lock(crew_->mutex);
    crew_->posted.push(item);
    if (!crew_->call_one()) {
        call_driver();
    }
}

/// Who cancelled something from outside drives no more. Under the crew's mutex.
void io_multiplexer::forget_driver_outside() noexcept {
    if (!crew_->led) {
        driver_.store(nullptr, std::memory_order_relaxed);
    }
}

/// @return false where this thread drives already
bool io_multiplexer::begin_visit() noexcept {
    if (is_inside()) {
        fetch_requests();
        return false;
    }
    std::unique_lock lock(crew_->mutex);
    ++crew_->visitors;
    while (crew_->led) {
        call_driver();
        crew_->free_for_visitor.wait(lock);
    }
    --crew_->visitors;
    crew_->led = true;
    crew_->visitors_own = std::exchange(this_thread_multiplexer, this);
    lock.unlock();  // what comes home is posted
    drive_here();
    inside_.store(this_thread_token(), std::memory_order_relaxed);
    fetch_requests();
    return true;
}

void io_multiplexer::end_visit() noexcept {
    inside_.store(nullptr, std::memory_order_relaxed);
    driver_.store(nullptr, std::memory_order_relaxed);
    this_thread_multiplexer = crew_->visitors_own;
    std::scoped_lock const lock(crew_->mutex);
    crew_->end_lead();
}

/// Asked by the leader before it sleeps.
bool io_multiplexer::crew_needs_leader() noexcept {
    if (crew_ == nullptr) {
        return false;
    }
    std::scoped_lock const lock(crew_->mutex);
    bool const work_may_start_io = crew_->working != 0 || outside_work_.load() != 0;
    crew_->leader_waits_for_work = pending_ == 0 && work_may_start_io;
    return crew_->visitors != 0 || crew_->has_work() || (pending_ == 0 && !work_may_start_io);
}

// Posting.

void io_multiplexer::post(work& item) noexcept {
    if (crew_ != nullptr) {
        post_to_crew(item);
    } else if (is_inside()) {
        posted_here_.push(item);
    } else {
        outsider const here(*this);
        posted_.push(item);
        call_driver();
    }
}

void io_multiplexer::post(signal_work& item) noexcept {
    if (item.posted_.exchange(true)) {
        return;
    }
    outsider const here(*this);
    // A handler may have interrupted the driving thread in the middle of its own queue.
    posted_.push(item);
    call_driver();
}

void io_multiplexer::wake() noexcept {
    outsider const here(*this);
    woken_.store(true);
    call_driver();
}

void io_multiplexer::work_finished() noexcept {
    outsider const here(*this);
    if (outside_work_.fetch_sub(1) == 1) {
        wake();
    }
}

}  // namespace plumb
