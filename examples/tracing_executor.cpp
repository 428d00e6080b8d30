// SPDX-License-Identifier: Apache-2.0
//
// An executor that wraps another one and measures it: how many items it ran, and how long each waited
// in the queue. It composes where the coroutine is launched, and what the coroutine calls knows
// nothing of it.
//
//   cmake --preset dev && cmake --build --preset dev --target example_tracing_executor
//   build/dev/examples/tracing_executor

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/pooled_memory.hpp>
#include <plumb/exec/resumption.hpp>
#include <plumb/exec/strand.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/run_on.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <new>

/// What was seen; any thread may add to it.
struct trace {
    std::atomic<long> items{0};
    std::atomic<long long> nanoseconds{0};
};

template <plumb::executor E>
class tracing_executor {
public:
    tracing_executor(E inner, trace& into) : inner_(inner), into_(&into) {}

    std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
        if (running_in_this_thread()) {
            return h;
        }
        post(&plumb::make_resumption(h));
        return std::noop_coroutine();
    }

    // Another's item can't hold the time of its post, so that each goes in an envelope from the pool.
    void post(plumb::work* w) const {
        void* const memory = plumb::pooled_allocate(sizeof(envelope));
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        inner_.post(::new (memory) envelope(*w, *into_));
    }

    // What an executor may have besides: handed on.
    bool running_in_this_thread() const { return ref().running_in_this_thread(); }
    bool concurrent() const noexcept { return plumb::is_concurrent(inner_); }
    plumb::root_list* roots() const { return ref().roots(); }
    void work_started() const { ref().work_started(); }
    void work_finished() const { ref().work_finished(); }

    friend bool operator==(tracing_executor const&, tracing_executor const&) = default;

private:
    using clock = std::chrono::steady_clock;

    struct envelope : plumb::owned_work {
        envelope(plumb::work& w, trace& t) : owned_work(&envelope::open), content(&w), into(&t) {}

        static void open(plumb::owned_work& self, fate f) noexcept {
            auto* const item = static_cast<envelope*>(&self);
            plumb::work& content = *item->content;
            if (f == fate::run) {
                ++item->into->items;
                item->into->nanoseconds += (clock::now() - item->posted).count();
            }
            plumb::pooled_deallocate(item, sizeof(envelope));
            f == fate::run ? content() : drop(content);
        }

        plumb::work* content;
        trace* into;
        clock::time_point posted = clock::now();
    };

    plumb::executor_ref ref() const { return inner_; }

    E inner_;
    trace* into_;
};

plumb::task<long> sum(long first, long last) {
    if (last - first < 100) {
        long s = 0;
        for (; first <= last; ++first) {
            s += first;
        }
        co_return s;
    }
    long const middle = (first + last) / 2;
    co_return co_await sum(first, middle) + co_await sum(middle + 1, last);
}

int main() {
    plumb::thread_pool pool(2);
    trace seen_by_strand;
    trace seen_by_pool;
    long total = 0;

    // The types compose at the call site, in either order.
    tracing_executor const pooled(pool.get_executor(), seen_by_pool);
    tracing_executor const traced(plumb::strand(pool.get_executor()), seen_by_strand);
    auto const main_task = [&]() -> plumb::task<> {
        for (long i = 0; i < 10; ++i) {
            total += co_await plumb::run_on(pooled, sum(i * 1000 + 1, (i + 1) * 1000));
        }
    };
    plumb::async_run(traced, main_task());
    pool.join();

    for (auto const& [name, t] : {std::pair("strand", &seen_by_strand), {"pool", &seen_by_pool}}) {
        std::printf("%s: %ld items, each waited for %lld ns on average\n", name, t->items.load(),
                    t->nanoseconds / t->items);
    }
    return total == 10000L * 10001 / 2 && seen_by_strand.items == 11 && seen_by_pool.items == 10
               ? 0
               : 1;
}
