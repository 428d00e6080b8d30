// SPDX-License-Identifier: Apache-2.0
//
// An executor that lets what is urgent pass: three queues in front of another executor, which is
// given one item for each that is queued and runs whatever is the most urgent by then.
//
//   cmake --preset dev && cmake --build --preset dev --target example_priority_executor
//   build/dev/examples/priority_executor

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/manual_executor.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/resumption.hpp>
#include <plumb/exec/strand.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/exec/work_queue.hpp>
#include <plumb/task/async_run.hpp>

#include <array>
#include <cstddef>
#include <iostream>
#include <mutex>
#include <string>
#include <utility>

enum class priority : std::size_t { urgent, normal, idle };

/// The queues. They outlive what is queued in them.
template <plumb::executor E>
class priority_queues : private plumb::owned_work {
public:
    class executor_type {
    public:
        std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
            if (running_in_this_thread()) {
                return h;
            }
            post(&plumb::make_resumption(h));
            return std::noop_coroutine();
        }
        void post(plumb::work* w) const { of_->post(*w, level_); }
        bool running_in_this_thread() const { return inside == of_; }
        bool concurrent() const { return plumb::is_concurrent(of_->inner_); }
        plumb::root_list* roots() const { return inner().roots(); }
        void work_started() const { inner().work_started(); }
        void work_finished() const { inner().work_finished(); }
        friend bool operator==(executor_type const&, executor_type const&) = default;

    private:
        friend priority_queues;
        executor_type(priority_queues& of, priority level) : of_(&of), level_(level) {}
        plumb::executor_ref inner() const { return plumb::executor_ref(of_->inner_); }
        priority_queues* of_;
        priority level_;
    };

    explicit priority_queues(E inner) : owned_work(&priority_queues::run_one), inner_(inner) {}

    executor_type get_executor(priority level) { return {*this, level}; }

private:
    void post(plumb::work& w, priority level) {
        bool idle = false;
        {
            std::scoped_lock const lock(mutex_);
            queues_[static_cast<std::size_t>(level)].push(w);
            idle = queued_++ == 0;
        }
        if (idle) {
            inner_.post(this);
        }
    }

    struct taken {
        plumb::work* item;
        bool more;
    };
    taken pop() {
        std::scoped_lock const lock(mutex_);
        for (auto& queue : queues_) {
            if (plumb::work* const item = queue.pop()) {
                return {item, --queued_ != 0};
            }
        }
        return {nullptr, false};
    }

    // One item a turn: what is posted to the other executor directly has its turn, too.
    static void run_one(plumb::owned_work& self, fate f) noexcept {
        auto& queues = static_cast<priority_queues&>(self);
        if (f == fate::dropped) {
            for (auto left = queues.pop(); left.item != nullptr; left = queues.pop()) {
                drop(*left.item);
            }
            return;
        }
        auto const [item, more] = queues.pop();
        if (more) {
            queues.inner_.post(&queues);  // another thread may run the next
        }
        auto const* const outer = std::exchange(inside, &queues);
        (*item)();
        inside = outer;
    }

    static inline thread_local priority_queues const* inside = nullptr;

    E inner_;
    std::mutex mutex_;
    std::array<plumb::work_queue, 3> queues_;
    std::size_t queued_ = 0;
};

/// What is given to `async_run`: the queues and a level.
template <plumb::executor E>
using priority_executor = typename priority_queues<E>::executor_type;

plumb::task<> say(std::string& said, char what) {
    said += what;
    co_return;
}

plumb::task<> count(int& counted) {
    ++counted;
    co_return;
}

int main() {
    plumb::manual_executor loop;
    priority_queues queues(loop.get_executor());
    std::string said;
    for (int i = 0; i < 3; ++i) {
        plumb::async_run(queues.get_executor(priority::idle), say(said, 'i'));
        plumb::async_run(queues.get_executor(priority::normal), say(said, 'n'));
        plumb::async_run(queues.get_executor(priority::urgent), say(said, 'u'));
    }
    loop.run();
    std::cout << "launched as inuinuinu, ran as " << said << '\n';

    // Over several threads, and with a strand above it: executors of executors.
    int counted = 0;
    plumb::thread_pool pool(2);
    priority_queues over(pool.get_executor());
    plumb::strand<priority_executor<plumb::thread_pool::executor_type>> const one(
        over.get_executor(priority::normal));
    for (int i = 0; i < 1000; ++i) {
        plumb::async_run(one, count(counted));
    }
    pool.join();
    std::cout << "counted to " << counted << " on two threads\n";
    return said == "uuunnniii" && counted == 1000 ? 0 : 1;
}
