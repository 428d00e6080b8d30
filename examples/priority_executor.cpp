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
#include <plumb/exec/work_queue.hpp>
#include <plumb/task/async_run.hpp>

#include <array>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>

enum class priority : std::size_t { urgent, normal, idle };

/// The queues. One thread at a time, as its executor; for a thread pool, put a strand below it.
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
        bool running_in_this_thread() const { return of_->running_; }
        plumb::root_list* roots() const { return plumb::executor_ref(of_->inner_).roots(); }
        friend bool operator==(executor_type const&, executor_type const&) = default;

    private:
        friend priority_queues;
        executor_type(priority_queues& of, priority level) : of_(&of), level_(level) {}
        priority_queues* of_;
        priority level_;
    };

    explicit priority_queues(E inner) : owned_work(&priority_queues::run_one), inner_(inner) {
        if (plumb::is_concurrent(inner)) {
            throw std::invalid_argument("put a strand below it");
        }
    }

    executor_type get_executor(priority level) { return {*this, level}; }

private:
    void post(plumb::work& w, priority level) {
        queues_[static_cast<std::size_t>(level)].push(w);
        if (queued_++ == 0) {
            inner_.post(this);
        }
    }

    plumb::work* pop() {
        for (auto& queue : queues_) {
            if (plumb::work* const item = queue.pop()) {
                --queued_;
                return item;
            }
        }
        return nullptr;
    }

    // One item a turn: what is posted to the other executor directly has its turn, too.
    static void run_one(plumb::owned_work& self, fate f) noexcept {
        auto& queues = static_cast<priority_queues&>(self);
        if (f == fate::dropped) {
            while (plumb::work* const item = queues.pop()) {
                drop(*item);
            }
            return;
        }
        plumb::work* const item = queues.pop();
        if (queues.queued_ != 0) {
            queues.inner_.post(&queues);
        }
        queues.running_ = true;
        (*item)();
        queues.running_ = false;
    }

    E inner_;
    std::array<plumb::work_queue, 3> queues_;
    std::size_t queued_ = 0;
    bool running_ = false;
};

plumb::task<> say(std::string& said, char what) {
    said += what;
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
    return said == "uuunnniii" ? 0 : 1;
}
