// SPDX-License-Identifier: Apache-2.0
#include "exec/pool_queues.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace plumb {
namespace {

constexpr unsigned common_first = 64;
constexpr unsigned oldest_first = 1024;
constexpr unsigned most_in_a_row = 16;

/// What this thread works for.
struct inside {
    pool_queues const* queues = nullptr;
    void* worker = nullptr;
};

constinit thread_local inside inside_here;

}  // namespace

pool_queues::pool_queues(std::size_t workers)
    : count_(workers), workers_(std::make_unique<worker[]>(workers)), working_(workers) {}

void pool_queues::make_do_with(std::size_t workers) noexcept {
    std::scoped_lock const locked(lock_);
    working_ = workers;
}

pool_queues::worker* pool_queues::here() const noexcept {
    return inside_here.queues == this ? static_cast<worker*>(inside_here.worker) : nullptr;
}

bool pool_queues::running_in_this_thread() const noexcept { return inside_here.queues == this; }
bool pool_queues::any_running_in_this_thread() noexcept { return inside_here.worker != nullptr; }

bool pool_queues::gives_way(worker const& w, work const& item) noexcept {
    return w.runs == &item && w.in_a_row >= most_in_a_row;
}

void pool_queues::post(work& item) noexcept {
    worker* const w = here();
    if (w != nullptr && !gives_way(*w, item) && w->queue.push(item)) {
        if (parked_.load() != 0 && searching_.load() == 0) {
            wake_one();
        }
        return;
    }
    post_last(item);
}

void pool_queues::post_last(work& item) noexcept {
    // Under the lock to the end: the item may lead to the end of the pool.
    std::scoped_lock const locked(lock_);
    common_.push(item);
    in_common_.store(in_common_.load(std::memory_order_relaxed) + 1);
    if (searching_.load() == 0) {
        wake_one_locked();
    }
}

void pool_queues::count_work(std::ptrdiff_t change) noexcept {
    std::scoped_lock const locked(lock_);
    outside_work_ += change;
    end_if_exhausted_locked();
}

void pool_queues::go(phase to) noexcept {
    std::scoped_lock const locked(lock_);
    phase_.store(std::max(phase_.load(), to));
    end_if_exhausted_locked();
    if (ended()) {
        wake_all_locked();
    }
}

void pool_queues::end_if_exhausted_locked() noexcept {
    if (phase_.load() == phase::joining && outside_work_ == 0 &&
        parked_.load() == static_cast<int>(working_) && in_common_.load() == 0) {
        phase_.store(phase::ended);
        wake_all_locked();
    }
}

void pool_queues::wake_one() noexcept {
    std::scoped_lock const locked(lock_);
    wake_one_locked();
}

void pool_queues::wake_one_locked() noexcept {
    if (worker* const w = first_parked_) {
        first_parked_ = w->next_parked;
        w->parked = false;
        parked_.store(parked_.load(std::memory_order_relaxed) - 1);
        searching_.fetch_add(1);
        w->awake.store(1);
        w->awake.notify_one();
    }
}

void pool_queues::wake_all_locked() noexcept {
    while (first_parked_ != nullptr) {
        wake_one_locked();
    }
}

void pool_queues::work_here(std::size_t worker_number) noexcept {
    worker& w = workers_[worker_number];
    inside_here = {this, &w};
    while (!ended()) {
        work* item = next(w);
        if (item == nullptr) {
            item = search(w);
        }
        if (item == nullptr) {
            break;
        }
        w.in_a_row = item == w.runs ? w.in_a_row + 1 : 1;
        w.runs = item;
        (*item)();
    }
    inside_here = {};
}

work* pool_queues::next(worker& w) noexcept {
    ++w.taken;
    if (w.taken % oldest_first == 0) {
        if (work* const item = w.queue.steal()) {
            return item;
        }
    }
    if (w.taken % common_first == 0) {
        if (work* const item = take_common()) {
            return item;
        }
    }
    if (work* const item = w.queue.pop()) {
        return item;
    }
    return take_common();
}

work* pool_queues::take_common() noexcept {
    if (in_common_.load() == 0) {
        return nullptr;
    }
    std::scoped_lock const locked(lock_);
    work* const item = common_.pop();
    if (item != nullptr) {
        in_common_.store(in_common_.load(std::memory_order_relaxed) - 1);
    }
    return item;
}

work* pool_queues::steal(worker& w) noexcept {
    std::size_t const self = static_cast<std::size_t>(&w - workers_.get());
    for (std::size_t i = 1; i < count_; ++i) {
        if (work* const item = workers_[(self + i) % count_].queue.steal()) {
            return item;
        }
    }
    return nullptr;
}

work* pool_queues::search(worker& w) noexcept {
    searching_.fetch_add(1);
    do {
        work* item = steal(w);
        if (item == nullptr) {
            item = take_common();
        }
        if (item != nullptr) {
            // Who posted while this one searched has woken nobody.
            if (searching_.fetch_sub(1) == 1 && parked_.load() != 0 && any_work()) {
                wake_one();
            }
            return item;
        }
    } while (park(w));
    return nullptr;
}

bool pool_queues::any_work() const noexcept {
    if (in_common_.load() != 0) {
        return true;
    }
    for (std::size_t i = 0; i < count_; ++i) {
        if (!workers_[i].queue.empty()) {
            return true;
        }
    }
    return false;
}

bool pool_queues::park(worker& w) noexcept {
    {
        std::scoped_lock const locked(lock_);
        if (ended()) {
            return false;
        }
        w.awake.store(0);
        w.parked = true;
        w.next_parked = std::exchange(first_parked_, &w);
        parked_.store(parked_.load(std::memory_order_relaxed) + 1);
        searching_.fetch_sub(1);
    }
    if (any_work()) {
        std::scoped_lock const locked(lock_);
        if (w.parked) {
            // The list may have grown in front.
            worker** link = &first_parked_;
            while (*link != &w) {
                link = &(*link)->next_parked;
            }
            *link = w.next_parked;
            w.parked = false;
            parked_.store(parked_.load(std::memory_order_relaxed) - 1);
            searching_.fetch_add(1);
        }
        return !ended();
    }
    {
        std::scoped_lock const locked(lock_);
        end_if_exhausted_locked();
    }
    w.awake.wait(0);
    return !ended();
}

pool_queues::remains::remains(pool_queues& of) noexcept
    : of_(of), outer_(inside_here.queues), outer_worker_(inside_here.worker) {
    inside_here = {&of, nullptr};
}

pool_queues::remains::~remains() { inside_here = {outer_, outer_worker_}; }

work* pool_queues::remains::take() noexcept {
    for (std::size_t i = 0; i < of_.count_; ++i) {
        if (work* const item = of_.workers_[i].queue.pop()) {
            return item;
        }
    }
    return of_.take_common();
}

}  // namespace plumb
