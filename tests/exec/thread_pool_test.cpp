// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/thread_pool.hpp>

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/when_all.hpp>

#include "platform/seam.hpp"
#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <coroutine>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

struct call : work {
    explicit call(std::function<void()> f)
        : work([](work& self) noexcept { static_cast<call&>(self).what(); }), what(std::move(f)) {}
    std::function<void()> what;
};

TEST(thread_pool, runs_everything_before_join_returns) {
    thread_pool pool(3);
    EXPECT_EQ(pool.threads(), 3);
    std::atomic<int> ran = 0;
    std::vector<call> items(1000, call([&] { ++ran; }));
    for (auto& item : items) {
        pool.get_executor().post(&item);
    }
    pool.join();
    EXPECT_EQ(ran, 1000);
}

TEST(thread_pool, has_at_least_one_thread_by_itself) {
    thread_pool const pool;
    EXPECT_GE(pool.threads(), 1);
}

TEST(thread_pool, one_thread_runs_in_the_order_of_the_posts) {
    thread_pool pool(1);
    std::string order;
    call a([&] { order += 'a'; });
    call b([&] { order += 'b'; });
    call c([&] { order += 'c'; });
    for (auto* const item : {&a, &b, &c}) {
        pool.get_executor().post(item);
    }
    pool.join();
    EXPECT_EQ(order, "abc");
}

TEST(thread_pool, runs_on_several_threads_at_once) {
    thread_pool pool(2);
    std::latch both(2);
    call a([&] { both.arrive_and_wait(); });
    call b([&] { both.arrive_and_wait(); });
    pool.get_executor().post(&a);
    pool.get_executor().post(&b);
    pool.join();
    EXPECT_TRUE(both.try_wait());
}

TEST(thread_pool, join_waits_for_what_items_post) {
    thread_pool pool(2);
    std::atomic<int> left = 500;
    std::optional<call> again;
    again.emplace([&] {
        if (--left > 0) {
            pool.get_executor().post(&*again);
        }
    });
    pool.get_executor().post(&*again);
    pool.join();
    EXPECT_EQ(left, 0);
}

TEST(thread_pool, join_waits_for_work_that_is_counted) {
    thread_pool pool(2);
    bool ran = false;
    call late([&] { ran = true; });
    std::jthread const elsewhere([&, guard = work_guard(pool.get_executor())]() mutable {
        std::this_thread::yield();
        pool.get_executor().post(&late);
        guard.reset();
    });
    pool.join();
    EXPECT_TRUE(ran);
}

TEST(thread_pool, a_pool_that_is_stopped_drops_what_is_queued) {
    struct item : owned_work {
        explicit item(std::atomic<int>& d)
            : owned_work([](owned_work& self, fate f) noexcept {
                  *static_cast<item&>(self).ended += f == fate::dropped ? 1 : 100;
              }),
              ended(&d) {}
        std::atomic<int>* ended;
    };
    std::atomic<int> ended = 0;
    std::latch started(1);
    std::latch stopped(1);
    std::vector<item> items(10, item(ended));
    {
        thread_pool pool(1);
        call block([&] {
            started.count_down();
            stopped.wait();
        });
        pool.get_executor().post(&block);
        for (auto& i : items) {
            pool.get_executor().post(&i);
        }
        started.wait();
        pool.stop();
        stopped.count_down();
    }
    EXPECT_EQ(ended, 10) << "each once, and none was run";
}

TEST(thread_pool, what_is_posted_after_join_is_dropped) {
    bool ran = false;
    call item([&] { ran = true; });
    {
        thread_pool pool(1);
        pool.join();
        pool.get_executor().post(&item);
    }
    EXPECT_FALSE(ran);
}

TEST(thread_pool, is_inside_only_on_its_threads) {
    thread_pool pool(1);
    thread_pool other(1);
    auto const h = std::noop_coroutine();
    bool ran = false;
    call item([&] {
        EXPECT_TRUE(pool.get_executor().running_in_this_thread());
        EXPECT_FALSE(other.get_executor().running_in_this_thread());
        EXPECT_EQ(pool.get_executor().dispatch(h), h);
        ran = true;
    });
    EXPECT_FALSE(pool.get_executor().running_in_this_thread());
    EXPECT_TRUE(executor_ref(pool.get_executor()).concurrent());
    EXPECT_NE(pool.get_executor(), other.get_executor());
    pool.get_executor().post(&item);
    pool.join();
    EXPECT_TRUE(ran);
}

TEST(thread_pool, posts_allocate_nothing) {
    thread_pool pool(1);
    std::uint64_t made = 0;
    int left = 1000;
    std::optional<call> again;
    again.emplace([&] {
        static thread_local std::uint64_t before = 0;
        if (left == 1000) {
            before = heap_allocations();
        }
        if (--left > 0) {
            pool.get_executor().post(&*again);
        } else {
            made = heap_allocations() - before;
        }
    });
    pool.get_executor().post(&*again);
    pool.join();
    EXPECT_EQ(left, 0);
    EXPECT_EQ(made, 0u);
}

TEST(thread_pool, many_producers_lose_nothing) {
    for (int round = 0; round < 20; ++round) {
        thread_pool pool(4);
        std::atomic<int> ran = 0;
        std::array<std::vector<call>, 3> items;
        {
            std::vector<std::jthread> producers;
            for (auto& mine : items) {
                mine.assign(300, call([&] { ++ran; }));
                producers.emplace_back([&] {
                    for (auto& item : mine) {
                        pool.get_executor().post(&item);
                    }
                });
            }
        }
        pool.join();
        ASSERT_EQ(ran, 900);
    }
}

TEST(thread_pool, what_is_queued_behind_a_blocked_thread_is_run_by_another) {
    thread_pool pool(2);
    std::atomic<int> ran = 0;
    std::latch all(100);
    std::vector<call> items(100, call([&] {
                                ++ran;
                                all.count_down();
                            }));
    call block([&] {
        for (auto& item : items) {
            pool.get_executor().post(&item);
        }
        all.wait();
    });
    pool.get_executor().post(&block);
    pool.join();
    EXPECT_EQ(ran, 100);
}

TEST(thread_pool, one_item_may_post_more_than_a_threads_queue_holds) {
    for (int const threads : {1, 3}) {
        thread_pool pool(threads);
        std::atomic<int> ran = 0;
        std::vector<call> items(2000, call([&] { ++ran; }));
        call many([&] {
            for (auto& item : items) {
                pool.get_executor().post(&item);
            }
        });
        pool.get_executor().post(&many);
        pool.join();
        EXPECT_EQ(ran, 2000);
    }
}

TEST(thread_pool, what_posts_itself_again_gives_way_to_what_comes_from_elsewhere) {
    thread_pool pool(1);
    std::atomic<bool> enough = false;
    std::latch started(1);
    bool first = true;
    std::optional<call> again;
    again.emplace([&] {
        if (std::exchange(first, false)) {
            started.count_down();
        }
        if (!enough) {
            pool.get_executor().post(&*again);
        }
    });
    call stop([&] { enough = true; });
    pool.get_executor().post(&*again);
    started.wait();
    pool.get_executor().post(&stop);
    pool.join();
    EXPECT_TRUE(enough);
}

TEST(thread_pool, items_that_post_one_another_do_not_starve_an_older_one) {
    thread_pool pool(1);
    bool ran = false;
    std::optional<call> ping;
    std::optional<call> pong;
    ping.emplace([&] {
        if (!ran) {
            pool.get_executor().post(&*pong);
        }
    });
    pong.emplace([&] { pool.get_executor().post(&*ping); });
    call older([&] { ran = true; });
    call begin([&] {
        pool.get_executor().post(&older);
        pool.get_executor().post(&*ping);
    });
    pool.get_executor().post(&begin);
    pool.join();
    EXPECT_TRUE(ran);
}

TEST(thread_pool, many_more_threads_than_processors_lose_nothing) {
    thread_pool pool(24);
    constexpr int chains = 64;
    constexpr int length = 200;
    std::atomic<int> ran = 0;
    std::vector<call> items;
    std::array<int, chains> left{};
    items.reserve(chains);
    for (std::size_t c = 0; c < chains; ++c) {
        left[c] = length;
        items.emplace_back([&, c] {
            ++ran;
            if (--left[c] > 0) {
                pool.get_executor().post(&items[c]);
            }
        });
    }
    for (auto& item : items) {
        pool.get_executor().post(&item);
    }
    pool.join();
    EXPECT_EQ(ran, chains * length);
}

TEST(thread_pool, idle_threads_are_woken_again_and_again) {
    thread_pool pool(4);
    for (int round = 0; round < 200; ++round) {
        std::latch all(2);
        call two([&] { all.count_down(); });
        call one([&] {
            pool.get_executor().post(&two);
            all.count_down();
        });
        pool.get_executor().post(&one);
        all.wait();
    }
    pool.join();
}

TEST(thread_pool, what_its_items_have_posted_is_dropped_when_it_is_stopped) {
    struct item : owned_work {
        explicit item(std::atomic<int>& d)
            : owned_work([](owned_work& self, fate f) noexcept {
                  *static_cast<item&>(self).ended += f == fate::dropped ? 1 : 1000;
              }),
              ended(&d) {}
        std::atomic<int>* ended;
    };
    std::atomic<int> ended = 0;
    std::vector<item> items(300, item(ended));
    {
        thread_pool pool(1);
        std::latch stopped(1);
        call last([&] {
            for (auto& i : items) {
                pool.get_executor().post(&i);
            }
            pool.stop();
            stopped.count_down();
        });
        pool.get_executor().post(&last);
        stopped.wait();
    }
    EXPECT_EQ(ended % 1000, 300) << "each once";
    EXPECT_EQ(ended / 1000, 0) << "none was run";
}

task<int> fib(int n) {
    if (n < 2) {
        co_return n;
    }
    auto [one, two] = co_await when_all(fib(n - 1), fib(n - 2));
    co_return one + two;
}

TEST(thread_pool, forks_are_joined) {
    for (int const threads : {1, 2, 4}) {
        thread_pool pool(threads);
        int result = 0;
        async_run(pool.get_executor(), fib(18), {},
                  [&](task_result<int>& r) { result = r.take(); });
        pool.join();
        EXPECT_EQ(result, 2584);
    }
}

/// Lets this many threads start, and then no more.
class few_threads {
public:
    explicit few_threads(int most) : table_(platform::os()) {
        inner_ = platform::os();
        left_ = most;
        table_.start_thread = [](platform::thread_start& s) noexcept {
            return left_-- > 0 ? inner_.start_thread(s)
                               : platform::failed_with(std::errc::resource_unavailable_try_again);
        };
        before_ = platform::replace_seam(&table_);
    }
    few_threads(few_threads const&) = delete;
    few_threads& operator=(few_threads const&) = delete;
    ~few_threads() { platform::replace_seam(before_); }

private:
    static inline platform::seam inner_{};
    static inline int left_ = 0;
    platform::seam table_;
    platform::seam const* before_ = nullptr;
};

TEST(thread_pool, makes_do_with_the_threads_that_the_system_gives) {
    few_threads const limited(2);
    thread_pool pool(8);
    EXPECT_EQ(pool.threads(), 2);
    std::atomic<int> ran = 0;
    call item([&] { ++ran; });
    pool.get_executor().post(&item);
    pool.join();
    EXPECT_EQ(ran, 1);
}

// The stop source of an executor with several threads.

TEST(stop_source_of_a_pool, calls_each_callback_once_or_not_at_all_when_it_is_unregistered) {
    constexpr int tasks = 4;
    for (int round = 0; round < 200; ++round) {
        thread_pool pool(3);
        stop_source source(pool.get_executor());
        std::array<std::atomic<int>, tasks> called{};
        std::array<std::atomic<bool>, tasks> gone{};
        std::vector<call> watch;
        for (std::size_t t = 0; t < tasks; ++t) {
            watch.emplace_back([&, t] {
                {
                    auto const count = [&called, &gone, t] {
                        EXPECT_FALSE(gone[t]);
                        ++called[t];
                    };
                    stop_callback const watching(source.token(), count);
                    std::this_thread::yield();
                }
                gone[t] = true;
            });
        }
        call request([&] { source.request_stop(); });
        pool.get_executor().post(&watch[0]);
        pool.get_executor().post(&watch[1]);
        pool.get_executor().post(&request);
        pool.get_executor().post(&watch[2]);
        pool.get_executor().post(&watch[3]);
        pool.join();
        for (auto const& c : called) {
            ASSERT_LE(c, 1);
        }
    }
}

TEST(stop_source_of_a_pool, a_request_from_elsewhere_is_posted_to_it) {
    thread_pool pool(2);
    stop_source source(pool.get_executor());
    std::atomic<bool> inside = false;
    auto const look = [&] { inside = pool.get_executor().running_in_this_thread(); };
    std::optional<stop_callback<decltype(look)>> watching;
    std::latch registered(1);
    call watch([&] {
        watching.emplace(source.token(), look);
        registered.count_down();
    });
    pool.get_executor().post(&watch);
    registered.wait();
    EXPECT_TRUE(source.request_stop());
    EXPECT_FALSE(source.request_stop());
    pool.join();
    EXPECT_TRUE(inside);
    EXPECT_FALSE(source.busy());
}

TEST(stop_source_of_a_pool, calls_at_once_what_is_registered_later) {
    thread_pool pool(1);
    stop_source source(pool.get_executor());
    source.request_stop();
    bool called = false;
    call watch([&] {
        auto const note = [&] { called = true; };
        stop_callback const watching(source.token(), note);
        EXPECT_TRUE(called);
    });
    pool.get_executor().post(&watch);
    pool.join();
    EXPECT_TRUE(called);
}

TEST(stop_source_of_a_pool, a_callback_may_unregister_itself_and_others) {
    thread_pool pool(1);
    stop_source source(pool.get_executor());
    int called = 0;
    call run([&] {
        std::optional<stop_callback<std::function<void()>>> one;
        std::optional<stop_callback<std::function<void()>>> two;
        one.emplace(source.token(), [&] {
            ++called;
            two.reset();
            one.reset();  // with the captures of this very function
        });
        two.emplace(source.token(), [&] {
            ++called;
            one.reset();
            two.reset();
        });
        source.request_stop();
        EXPECT_FALSE(one);
        EXPECT_FALSE(two);
    });
    pool.get_executor().post(&run);
    pool.join();
    EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace plumb::test
