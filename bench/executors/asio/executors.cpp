// SPDX-License-Identifier: Apache-2.0
//
// asio. It has no mutex that coroutines wait for, and no joins.
#include "../executors.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

struct chain {
    asio::io_context& context;
    std::uint64_t left;

    void operator()() {
        if (--left != 0) {
            asio::post(context, chain(*this));
        }
    }
};

figures post(std::uint64_t count, int) {
    asio::io_context context(1);
    return time_items(count, [&](std::uint64_t n) {
        asio::post(context, chain{context, n});
        context.restart();
        expect(context.run() == n);
    });
}

figures dispatch(std::uint64_t count, int) {
    asio::io_context context(1);
    return time_items(count, [&](std::uint64_t n) {
        std::uint64_t volatile ticks = 0;
        asio::post(context, [&] {
            for (std::uint64_t i = 0; i != n; ++i) {
                asio::dispatch(context, [&] { ticks = ticks + 1; });
            }
        });
        context.restart();
        context.run();
        expect(ticks == n);
    });
}

template <class E>
double produce(E const& executor, std::uint64_t count, int producers) {
    return time_items(count, [&](std::uint64_t n) {
        countdown over(n);
        produce_on(producers, n, [&](std::uint64_t first, std::uint64_t last) {
            for (auto i = first; i != last; ++i) {
                asio::post(executor, [&over] { over.end_one(); });
            }
        });
        over.wait();
    });
}

figures one_producer(std::uint64_t count, int threads) {
    asio::thread_pool pool(static_cast<std::size_t>(threads));
    return produce(pool.get_executor(), count, 1);
}

figures four_producers(std::uint64_t count, int threads) {
    asio::thread_pool pool(static_cast<std::size_t>(threads));
    return produce(pool.get_executor(), count, 4);
}

figures through_strand(std::uint64_t count, int threads) {
    asio::thread_pool pool(static_cast<std::size_t>(threads));
    return produce(asio::make_strand(pool.get_executor()), count, 1);
}

figures two_strands(std::uint64_t count, int) {
    asio::thread_pool pool(1);
    auto const flooded = asio::make_strand(pool.get_executor());
    auto const other = asio::make_strand(pool.get_executor());
    struct again {
        beside_a_flood& state;
        asio::strand<asio::thread_pool::executor_type> const& here;
        countdown& over;
        void operator()() const {
            if (state.other()) {
                asio::post(here, again(*this));
            } else {
                over.end_one();
            }
        }
    };
    std::uint64_t most = 0;
    double const ns = time_items(count, [&](std::uint64_t n) {
        beside_a_flood state(n);
        countdown over(1);
        asio::post(pool, [&] {
            for (std::uint64_t i = 0; i != n; ++i) {
                asio::post(flooded, [&state] { state.flood(); });
            }
            asio::post(other, again{state, other, over});
        });
        over.wait();
        most = state.most;
    });
    return {ns, most};
}

struct ball {
    asio::io_context* contexts[2];
    std::uint64_t left;
    countdown* over;

    void operator()() {
        if (--left == 0) {
            over->end_one();
        } else {
            asio::post(*contexts[left % 2], ball(*this));
        }
    }
};

figures ping_pong(std::uint64_t count, int) {
    asio::io_context here(1);
    asio::io_context there(1);
    auto const keep_here = asio::make_work_guard(here);
    auto const keep_there = asio::make_work_guard(there);
    std::thread first([&] { here.run(); });
    std::thread second([&] { there.run(); });
    double const ns = time_items(count, [&](std::uint64_t n) {
        countdown over(1);
        asio::post(here, ball{{&here, &there}, n, &over});
        over.wait();
    });
    here.stop();
    there.stop();
    first.join();
    second.join();
    return ns;
}

figures through_channel(std::uint64_t count, int) {
    using executor = asio::io_context::executor_type;
    using values = asio::experimental::basic_channel<executor, asio::experimental::channel_traits<>,
                                                     void(error_code, std::uint64_t)>;
    static constexpr auto as_value = asio::as_tuple(asio::use_awaitable_t<executor>());
    static constexpr auto send = [](values& c, std::uint64_t n) -> asio::awaitable<void, executor> {
        for (std::uint64_t i = 0; i != n; ++i) {
            (void)co_await c.async_send(error_code(), i, as_value);
        }
        c.close();
    };
    static constexpr auto receive = [](values& c,
                                       std::uint64_t& got) -> asio::awaitable<void, executor> {
        for (;;) {
            auto const [error, value] = co_await c.async_receive(as_value);
            if (error) {
                co_return;
            }
            ++got;
        }
    };
    asio::io_context context(1);
    return time_items(count, [&](std::uint64_t n) {
        values c(context.get_executor(), 64);
        std::uint64_t got = 0;
        asio::co_spawn(context.get_executor(), receive(c, got), asio::detached);
        asio::co_spawn(context.get_executor(), send(c, n), asio::detached);
        context.restart();
        context.run();
        expect(got == n);
    });
}

/// From inside the pool, as the others do.
figures spawn(std::uint64_t count, int threads) {
    asio::thread_pool pool(static_cast<std::size_t>(threads));
    return time_items(count, [&](std::uint64_t n) {
        countdown over(n);
        asio::post(pool, [&] {
            for (std::uint64_t i = 0; i != n; ++i) {
                asio::post(pool, [&over] { over.end_one(); });
            }
        });
        over.wait();
    });
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
    {"spawn", &spawn},
};

}  // namespace

int main(int argc, char** argv) { return run_executors(argc, argv, workloads); }
