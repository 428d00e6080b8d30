// SPDX-License-Identifier: Apache-2.0
//
// plumb's executors and what stands on them.
#include "../executors.hpp"

#include <plumb/exec/strand.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/channel.hpp>
#include <plumb/task/mutex.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_all.hpp>

#include <memory>

using namespace plumb;

namespace {

/// Runs a task on a pool, and waits for it here.
template <class T>
void run_here(thread_pool& pool, task<T> what) {
    countdown over(1);
    async_run(pool.get_executor(), std::move(what), {}, [&](task_result<T>& r) {
        r.take();
        over.end_one();
    });
    over.wait();
}

figures post(std::uint64_t count, int) {
    struct chain : work {
        chain(io_context& c, std::uint64_t n) : work(&run), context(c), left(n) {}
        static void run(work& w) noexcept {
            auto& self = static_cast<chain&>(w);
            if (--self.left != 0) {
                self.context.get_executor().post(&self);
            }
        }
        io_context& context;
        std::uint64_t left;
    };
    io_context context;
    return time_items(count, [&](std::uint64_t n) {
        chain items(context, n);
        context.get_executor().post(&items);
        expect(context.run().value() == n);
    });
}

/// From inside, where it is a resumption.
figures dispatch(std::uint64_t count, int) {
    struct ticking {
        struct promise_type {
            ticking get_return_object() {
                return {std::coroutine_handle<promise_type>::from_promise(*this)};
            }
            std::suspend_always initial_suspend() noexcept { return {}; }
            std::suspend_always final_suspend() noexcept { return {}; }
            void unhandled_exception() noexcept { std::terminate(); }
            void return_void() noexcept {}
        };
        std::coroutine_handle<> coroutine;
    };
    std::uint64_t ticks = 0;
    auto const ticker = [](std::uint64_t& counted) -> ticking {
        for (;;) {
            ++counted;
            co_await std::suspend_always();
        }
    }(ticks);
    auto const all = [&](io_context& context, std::uint64_t n) -> task<> {
        executor_ref const here(context.get_executor());
        for (std::uint64_t i = 0; i != n; ++i) {
            here.dispatch(ticker.coroutine).resume();
        }
        co_return;
    };
    io_context context;
    double const ns = time_items(count, [&](std::uint64_t n) {
        ticks = 0;
        async_run(context.get_executor(), all(context, n));
        (void)context.run();
        expect(ticks == n);
    });
    ticker.coroutine.destroy();
    return ns;
}

struct item : work {
    item() : work(&run) {}
    static void run(work& w) noexcept { static_cast<item&>(w).over->end_one(); }
    countdown* over = nullptr;
};

template <class E>
double produce(E const& executor, std::uint64_t count, int producers) {
    std::vector<item> items(count);
    return time_items(count, [&](std::uint64_t n) {
        countdown over(n);
        produce_on(producers, n, [&](std::uint64_t first, std::uint64_t last) {
            for (auto i = first; i != last; ++i) {
                items[i].over = &over;
                executor.post(&items[i]);
            }
        });
        over.wait();
    });
}

figures one_producer(std::uint64_t count, int threads) {
    thread_pool pool(threads);
    return produce(pool.get_executor(), count, 1);
}

figures four_producers(std::uint64_t count, int threads) {
    thread_pool pool(threads);
    return produce(pool.get_executor(), count, 4);
}

figures through_strand(std::uint64_t count, int threads) {
    thread_pool pool(threads);
    return produce(strand(pool.get_executor()), count, 1);
}

figures two_strands(std::uint64_t count, int) {
    struct flooding : work {
        flooding() : work([](work& w) noexcept { static_cast<flooding&>(w).state->flood(); }) {}
        beside_a_flood* state = nullptr;
    };
    using on_pool = strand<thread_pool::executor_type>;
    struct again : work {
        again(beside_a_flood& b, on_pool const& s, countdown& c)
            : work(&run), state(b), here(s), over(c) {}
        static void run(work& w) noexcept {
            auto& self = static_cast<again&>(w);
            if (self.state.other()) {
                self.here.post(&self);
            } else {
                self.over.end_one();
            }
        }
        beside_a_flood& state;
        on_pool const& here;
        countdown& over;
    };
    thread_pool pool(1);
    on_pool const flooded(pool.get_executor());
    on_pool const other(pool.get_executor());
    std::vector<flooding> flood(count);
    std::uint64_t most = 0;
    double const ns = time_items(count, [&](std::uint64_t n) {
        beside_a_flood state(n);
        countdown over(1);
        again item(state, other, over);
        auto const begin = [&]() -> task<> {
            for (std::uint64_t i = 0; i != n; ++i) {
                flood[i].state = &state;
                flooded.post(&flood[i]);
            }
            other.post(&item);
            co_return;
        };
        run_here(pool, begin());
        over.wait();
        most = state.most;
    });
    return {ns, most};
}

figures ping_pong(std::uint64_t count, int) {
    struct ball : work {
        ball(io_context& a, io_context& b, std::uint64_t n, countdown& c)
            : work(&run), contexts{&a, &b}, left(n), over(c) {}
        static void run(work& w) noexcept {
            auto& self = static_cast<ball&>(w);
            if (--self.left == 0) {
                return self.over.end_one();
            }
            self.contexts[self.left % 2]->get_executor().post(&self);
        }
        io_context* contexts[2];
        std::uint64_t left;
        countdown& over;
    };
    io_context here;
    io_context there;
    work_guard const keep_here(here.get_executor());
    work_guard const keep_there(there.get_executor());
    std::thread first([&] { (void)here.run(); });
    std::thread second([&] { (void)there.run(); });
    double const ns = time_items(count, [&](std::uint64_t n) {
        countdown over(1);
        ball b(here, there, n, over);
        here.get_executor().post(&b);
        over.wait();
    });
    here.stop();
    there.stop();
    first.join();
    second.join();
    return ns;
}

figures through_channel(std::uint64_t count, int) {
    static constexpr auto send = [](channel<std::uint64_t>& c, std::uint64_t n) -> task<> {
        for (std::uint64_t i = 0; i != n; ++i) {
            (void)co_await c.send(std::uint64_t(i));
        }
        c.close();
    };
    static constexpr auto receive = [](channel<std::uint64_t>& c, std::uint64_t& got) -> task<> {
        for (;;) {
            auto const value = co_await c.receive();
            if (!value) {
                co_return;
            }
            ++got;
        }
    };
    io_context context;
    return time_items(count, [&](std::uint64_t n) {
        channel<std::uint64_t> c(64);
        std::uint64_t got = 0;
        async_run(context.get_executor(), receive(c, got));
        async_run(context.get_executor(), send(c, n));
        (void)context.run();
        expect(got == n);
    });
}

figures with_mutex(std::uint64_t count, int threads) {
    static constexpr auto lock_often = [](mutex& m, std::uint64_t& sum, std::uint64_t n) -> task<> {
        for (std::uint64_t i = 0; i != n; ++i) {
            auto const held = co_await m.lock();
            ++sum;
        }
    };
    thread_pool pool(threads);
    return time_items(count, [&](std::uint64_t n) {
        mutex m;
        std::uint64_t sum = 0;
        run_here(pool, task_scope::run([&](task_scope& scope) -> task<> {
                     for (int i = 0; i != 8; ++i) {
                         scope.spawn(lock_often(m, sum, n / 8));
                     }
                     co_return;
                 }));
        expect(sum == n / 8 * 8);
    });
}

figures spawn(std::uint64_t count, int threads) {
    static constexpr auto add = [](std::atomic<std::uint64_t>& sum) -> task<> {
        sum.fetch_add(1, std::memory_order_relaxed);
        co_return;
    };
    thread_pool pool(threads);
    return time_items(count, [&](std::uint64_t n) {
        std::atomic<std::uint64_t> sum{0};
        run_here(pool, task_scope::run([&](task_scope& scope) -> task<> {
                     for (std::uint64_t i = 0; i != n; ++i) {
                         scope.spawn(add(sum));
                     }
                     co_return;
                 }));
        expect(sum.load() == n);
    });
}

task<std::uint64_t> fib_task(int n) {
    if (n < 2) {
        co_return static_cast<std::uint64_t>(n);
    }
    auto const [a, b] = co_await when_all(fib_task(n - 1), fib_task(n - 2));
    co_return a + b;
}

figures fib(std::uint64_t count, int threads) {
    thread_pool pool(threads);
    double const calls = static_cast<double>(fib_calls(fib_of(count)));
    auto const all = [](int n) -> task<> { expect(co_await fib_task(n) == fib_value(n)); };
    return static_cast<double>(count) / calls *
           time_items(count, [&](std::uint64_t n) { run_here(pool, all(fib_of(n))); });
}

task<std::uint64_t> skynet_task(std::uint64_t number, std::uint64_t size) {
    if (size == 1) {
        co_return number;
    }
    std::vector<task<std::uint64_t>> parts;
    parts.reserve(10);
    for (std::uint64_t i = 0; i != 10; ++i) {
        parts.push_back(skynet_task(number + i * (size / 10), size / 10));
    }
    std::uint64_t sum = 0;
    for (auto const part : co_await when_all(std::move(parts))) {
        sum += part;
    }
    co_return sum;
}

figures skynet(std::uint64_t count, int threads) {
    thread_pool pool(threads);
    auto const all = [](std::uint64_t size) -> task<> {
        expect(co_await skynet_task(0, size) == size * (size - 1) / 2);
    };
    return time_items(count, [&](std::uint64_t n) { run_here(pool, all(skynet_of(n))); });
}

constexpr workload workloads[] = {
    {"post", &post},
    {"dispatch", &dispatch},
    {"one_producer", &one_producer},
    {"four_producers", &four_producers},
    {"strand", &through_strand},
    {"two_strands", &two_strands},
    {"ping_pong", &ping_pong},
    {"channel", &through_channel},
    {"mutex", &with_mutex},
    {"spawn", &spawn},
    {"fib", &fib},
    {"skynet", &skynet},
};

}  // namespace

int main(int argc, char** argv) { return run_executors(argc, argv, workloads); }
