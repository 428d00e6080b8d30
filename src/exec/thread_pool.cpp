// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/thread_pool.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/resumption.hpp>
#include <plumb/exec/work_queue.hpp>

#include "platform/seam.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

// States of the pool, all under its mutex: open -> joining (`join`: it ends by itself as soon as it is exhausted) -> ended,
// or open -> ended (`stop`). An item belongs to the queue until a thread takes it. A thread is asleep, or it counts as
// busy: so the queue is empty, no thread busy and no work counted only where nothing can come any more.
namespace plumb {

class thread_pool::core {
public:
    explicit core(int threads) : executor_(*this), roots_(true) {
        auto const& os = platform::os();
        int const wanted = threads > 0 ? threads : os.processor_count();
        // Neither vector nor threads move once the first one runs.
        threads_.resize(static_cast<std::size_t>(wanted),
                        {[](void* self) noexcept { static_cast<core*>(self)->work_here(); }, this});
        busy_ = wanted;
        while (started_ < wanted && os.start_thread(threads_[started()]) >= 0) {
            ++started_;
        }
        require(started_ > 0, "a thread_pool was made where no thread can be started");
        std::scoped_lock const locked(mutex_);
        busy_ -= wanted - started_;
    }

    core(core const&) = delete;
    core& operator=(core const&) = delete;

    ~core() {
        require(here != this, "a thread_pool was destroyed on one of its own threads");
        end(phase::ended);
        core* const outer = std::exchange(here, this);
        // Work that is queued may be part of a coroutine, and a coroutine may queue some when it is destroyed.
        do {
            while (work* const item = queue_.pop()) {
                owned_work::drop(*item);
            }
        } while (roots_.destroy_youngest());
        here = outer;
    }

    void post(work& w) noexcept {
        // Under the mutex to the end: the item may lead to the end of the pool.
        std::scoped_lock const locked(mutex_);
        queue_.push(w);
        if (busy_ < started_) {
            wake_.notify_one();
        }
    }

    void count_work(int change) noexcept {
        std::scoped_lock const locked(mutex_);
        outside_work_ += change;
        if (exhausted()) {
            wake_.notify_all();
        }
    }

    enum class phase { open, joining, ended };

    /// Moves on to the phase.
    void go(phase to) noexcept {
        std::scoped_lock const locked(mutex_);
        phase_ = std::max(phase_, to);
        wake_.notify_all();
    }

    /// Moves on to the phase, and waits until the threads have ended.
    void end(phase by) noexcept {
        require(here != this, "a thread_pool was joined by one of its own threads");
        go(by);
        for (; joined_ < started_; ++joined_) {
            platform::os().join_thread(threads_[static_cast<std::size_t>(joined_)]);
        }
    }

    static constinit thread_local core* here;

    executor_type const executor_;
    root_list roots_;
    int started_ = 0;

private:
    [[nodiscard]] std::size_t started() const noexcept {
        return static_cast<std::size_t>(started_);
    }
    [[nodiscard]] bool exhausted() const noexcept {
        return phase_ != phase::open && queue_.empty() && busy_ == 0 && outside_work_ == 0;
    }

    void work_here() noexcept {
        here = this;
        std::unique_lock locked(mutex_);
        while (phase_ != phase::ended) {
            if (work* const item = queue_.pop()) {
                locked.unlock();
                (*item)();
                locked.lock();
                continue;
            }
            --busy_;
            if (exhausted()) {
                phase_ = phase::ended;
                wake_.notify_all();
                return;
            }
            wake_.wait(locked);
            ++busy_;
        }
    }

    std::vector<platform::thread_start> threads_;
    int joined_ = 0;

    std::mutex mutex_;
    std::condition_variable wake_;
    work_queue queue_;
    phase phase_ = phase::open;
    int busy_ = 0;
    std::ptrdiff_t outside_work_ = 0;
};

constinit thread_local thread_pool::core* thread_pool::core::here = nullptr;

thread_pool::thread_pool(int threads) : core_(std::make_unique<core>(threads)) {}
thread_pool::~thread_pool() = default;

thread_pool::executor_type const& thread_pool::get_executor() const noexcept {
    return core_->executor_;
}
int thread_pool::threads() const noexcept { return core_->started_; }
void thread_pool::join() noexcept { core_->end(core::phase::joining); }
void thread_pool::stop() noexcept { core_->go(core::phase::ended); }

std::coroutine_handle<>
thread_pool::executor_type::dispatch(std::coroutine_handle<> h) const noexcept {
    if (running_in_this_thread()) {
        return h;
    }
    core_->post(make_resumption(h));
    return std::noop_coroutine();
}
void thread_pool::executor_type::post(work* w) const noexcept { core_->post(*w); }
bool thread_pool::executor_type::running_in_this_thread() const noexcept {
    return core::here == core_;
}
thread_pool::executor_type const& thread_pool::executor_type::lasting() const noexcept {
    return core_->executor_;
}
root_list* thread_pool::executor_type::roots() const noexcept { return &core_->roots_; }
void thread_pool::executor_type::work_started() const noexcept { core_->count_work(1); }
void thread_pool::executor_type::work_finished() const noexcept { core_->count_work(-1); }

}  // namespace plumb
