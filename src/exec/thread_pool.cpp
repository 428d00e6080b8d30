// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/thread_pool.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/exec/context_roots.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/resumption.hpp>

#include "exec/pool_queues.hpp"
#include "platform/seam.hpp"

#include <cstddef>
#include <vector>

namespace plumb {

class thread_pool::core {
public:
    using phase = pool_queues::phase;

    explicit core(int threads)
        : executor_(*this),
          queues_(static_cast<std::size_t>(threads)),
          threads_(static_cast<std::size_t>(threads)) {
        for (auto& t : threads_) {
            t.of = this;
            t.start = {&thread::work_here, &t};
            if (platform::os().start_thread(t.start) < 0) {
                break;
            }
            ++started_;
        }
        require(started_ > 0, "a thread_pool was made where no thread can be started");
        queues_.make_do_with(started_);
    }

    core(core const&) = delete;
    core& operator=(core const&) = delete;

    ~core() {
        require(!inside(), "a thread_pool was destroyed on one of its own threads");
        end(phase::ended);
        pool_queues::remains left(queues_);
        // Work that is queued may be part of a coroutine, and a coroutine may queue some when it is destroyed.
        do {
            while (work* const item = left.take()) {
                owned_work::drop(*item);
            }
        } while (roots_.destroy_youngest());
    }

    void post(work& w) noexcept { queues_.post(w); }
    void post_last(work& w) noexcept { queues_.post_last(w); }
    void count_work(int change) noexcept { queues_.count_work(change); }
    [[nodiscard]] bool inside() const noexcept { return queues_.running_in_this_thread(); }
    [[nodiscard]] std::size_t started() const noexcept { return started_; }

    void go(phase to) noexcept { queues_.go(to); }

    /// Moves on to the phase, and waits until the threads have ended.
    void end(phase by) noexcept {
        require(!inside(), "a thread_pool was joined by one of its own threads");
        go(by);
        for (; joined_ < started_; ++joined_) {
            platform::os().join_thread(threads_[joined_].start);
        }
    }

    executor_type const executor_;
    context_roots roots_{"thread_pool", true};

private:
    struct thread {
        core* of = nullptr;
        platform::thread_start start{};

        static void work_here(void* self) noexcept {
            auto& t = *static_cast<thread*>(self);
            t.of->queues_.work_here(static_cast<std::size_t>(&t - t.of->threads_.data()));
        }
    };

    pool_queues queues_;
    std::vector<thread> threads_;  // none moves once the first one runs
    std::size_t started_ = 0;
    std::size_t joined_ = 0;
};

thread_pool::thread_pool(int threads)
    : core_(std::make_unique<core>(threads > 0 ? threads : platform::os().processor_count())) {}
thread_pool::~thread_pool() = default;

thread_pool::executor_type const& thread_pool::get_executor() const noexcept {
    return core_->executor_;
}
int thread_pool::threads() const noexcept { return static_cast<int>(core_->started()); }
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
void thread_pool::executor_type::post_last(work* w) const noexcept { core_->post_last(*w); }
bool thread_pool::executor_type::running_in_this_thread() const noexcept { return core_->inside(); }
thread_pool::executor_type const& thread_pool::executor_type::lasting() const noexcept {
    return core_->executor_;
}
root_list* thread_pool::executor_type::roots() const noexcept { return &core_->roots_; }
void thread_pool::executor_type::work_started() const noexcept { core_->count_work(1); }
void thread_pool::executor_type::work_finished() const noexcept { core_->count_work(-1); }

}  // namespace plumb
