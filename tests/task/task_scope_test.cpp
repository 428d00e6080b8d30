// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task_scope.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/async_wait.hpp>

#include "support/allocations.hpp"
#include "support/context.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class task_scope_test : public ::testing::Test {
protected:
    static task<> pass(gate& g, std::string& order, char what) {
        co_await g;
        order += what;
    }

    manual_loop loop;
    gate one;
    gate two;
    std::string order;
};

TEST_F(task_scope_test, without_children_is_its_body) {
    EXPECT_EQ(loop.run(task_scope::run([](task_scope&) -> task<int> { co_return 5; })), 5);
    int object = 0;
    auto const refer = [&](task_scope&) -> task<int&> { co_return object; };
    EXPECT_EQ(&loop.run(task_scope::run(refer)), &object);
}

TEST_F(task_scope_test, ends_after_the_last_of_its_children) {
    auto const whole = [&]() -> task<> {
        co_await task_scope::run([&](task_scope& scope) -> task<> {
            scope.spawn(pass(one, order, '1'));
            scope.spawn(pass(two, order, '2'));
            order += 'b';
            co_return;
        });
        order += 'e';
    };
    async_run(loop.get_executor(), whole());
    loop.run();
    EXPECT_EQ(order, "b");
    two.open();
    loop.run();
    EXPECT_EQ(order, "b2");
    one.open();
    loop.run();
    EXPECT_EQ(order, "b21e");
    EXPECT_TRUE(loop.roots().empty());
}

TEST_F(task_scope_test, spawns_later_and_never_inline) {
    auto const child = [&]() -> task<> {
        order += 'c';
        co_return;
    };
    loop.run(task_scope::run([&](task_scope& scope) -> task<> {
        scope.spawn(child());
        order += 'b';
        co_return;
    }));
    EXPECT_EQ(order, "bc");
}

TEST_F(task_scope_test, children_may_spawn_more) {
    struct family {
        static task<> grow(task_scope& scope, int depth, int& count) {
            ++count;
            if (depth > 0) {
                scope.spawn(grow(scope, depth - 1, count));
                scope.spawn(grow(scope, depth - 1, count));
            }
            co_return;
        }
    };
    int count = 0;
    loop.run(task_scope::run([&](task_scope& scope) { return family::grow(scope, 5, count); }));
    EXPECT_EQ(count, 63);
}

TEST_F(task_scope_test, the_first_failure_stops_the_rest_and_leaves_the_scope) {
    bool stopped = false;
    auto const watch = [&]() -> task<> {
        auto const note = [&] { stopped = true; };
        stop_callback const on_stop((co_await this_env()).stop, note);
        co_await one;
    };
    auto const fail = [&]() -> task<> {
        throw std::runtime_error("the child");
        co_return;
    };
    std::string what;
    auto whole = task_scope::run([&](task_scope& scope) -> task<> {
        scope.spawn(watch());
        scope.spawn(fail());
        co_await two;
    });
    async_run(loop.get_executor(), std::move(whole), {}, [&](task_result<void>& r) {
        try {
            r.take();
        } catch (std::runtime_error const& e) {
            what = e.what();
        }
    });
    loop.run();
    EXPECT_TRUE(stopped);
    two.open();
    loop.run();
    EXPECT_EQ(what, "") << "a child is left";
    one.open();
    loop.run();
    EXPECT_EQ(what, "the child");
}

TEST_F(task_scope_test, a_failure_of_the_body_stops_the_children) {
    bool stopped = false;
    auto const watch = [&]() -> task<> {
        auto const note = [&] { stopped = true; };
        stop_callback const on_stop((co_await this_env()).stop, note);
        while (!stopped) {
            co_await one;
        }
    };
    auto whole = task_scope::run([&](task_scope& scope) -> task<> {
        scope.spawn(watch());
        co_await two;
        throw std::runtime_error("the body");
    });
    bool thrown = false;
    async_run(loop.get_executor(), std::move(whole), {},
              [&](task_result<void>& r) { thrown = r.failed(); });
    loop.run();
    two.open();
    loop.run();
    EXPECT_TRUE(stopped);
    EXPECT_FALSE(thrown);
    one.open();
    loop.run();
    EXPECT_TRUE(thrown);
}

TEST_F(task_scope_test, what_is_spawned_after_the_stop_begins_stopped) {
    auto const child = [&]() -> task<> {
        order += (co_await this_env()).stop.stop_requested() ? 's' : '-';
    };
    loop.run(task_scope::run([&](task_scope& scope) -> task<> {
        scope.request_stop();
        scope.spawn(child());
        order += 'b';
        co_return;
    }));
    EXPECT_EQ(order, "bs");
}

/// Calls a function when it is destroyed.
template <class F>
class at_end {
public:
    explicit at_end(F f) : f_(std::move(f)) {}
    at_end(at_end const&) = delete;
    at_end& operator=(at_end const&) = delete;
    ~at_end() { f_(); }

private:
    F f_;
};

TEST_F(task_scope_test, what_is_spawned_while_it_is_destroyed_never_runs) {
    int alive = 0;
    auto const late = [&](counted) -> task<> {
        order += 'l';
        co_return;
    };
    auto const child = [&](task_scope& scope) -> task<> {
        at_end const spawn([&] {
            order += 'd';
            scope.spawn(late(counted(alive)));
        });
        co_await one;
    };
    auto const body = [&](task_scope& scope) -> task<> {
        scope.spawn(child(scope));
        at_end const spawn([&] {
            order += 'b';
            scope.spawn(late(counted(alive)));
        });
        co_await two;
    };
    {
        manual_loop ending;
        async_run(ending.get_executor(), task_scope::run(body));
        ending.run();
        EXPECT_EQ(order, "");
    }
    EXPECT_EQ(order, "bd");
    EXPECT_EQ(alive, 0);
}

TEST_F(task_scope_test, destroyed_where_it_waits_it_destroys_its_children) {
    int alive = 0;
    {
        manual_loop ends;
        gate never;
        auto const wait = [](gate& g, counted) -> task<> { co_await g; };
        async_run(ends.get_executor(), task_scope::run([&](task_scope& scope) -> task<> {
                      scope.spawn(wait(never, counted(alive)));
                      co_return;
                  }));
        ends.run();
        EXPECT_GE(alive, 1);
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(task_scope_test, destroyed_with_children_that_have_not_begun_it_runs_none) {
    int alive = 0;
    {
        manual_loop ends;
        auto const never = [](counted) -> task<> {
            ADD_FAILURE();
            co_return;
        };
        async_run(ends.get_executor(), task_scope::run([&](task_scope& scope) -> task<> {
                      scope.spawn(never(counted(alive)));
                      co_return;
                  }));
        ends.run_one();
        EXPECT_EQ(ends.count(), 1u);
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(task_scope_test, allocates_nothing_in_a_steady_state) {
    auto const nothing = []() -> task<> { co_return; };
    auto const whole = [&]() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            if (i == 10) {
                before = heap_allocations();
            }
            co_await task_scope::run([&](task_scope& scope) -> task<> {
                for (int c = 0; c < 10; ++c) {
                    scope.spawn(nothing());
                }
                co_return;
            });
        }
        if (pooled_memory_recycles()) {
            EXPECT_EQ(heap_allocations() - before, 0u);
        }
    };
    loop.run(whole());
}

/// With operations that can be stopped.
class task_scope_io_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, task_scope_io_test, every_backend(), name_of_backend);

task<> forever() { (co_await co_wait(deadline())).value(); }

TEST_P(task_scope_io_test, a_scope_that_stops_its_children_has_not_failed) {
    auto const value = run(task_scope::run([](task_scope& scope) -> task<int> {
        for (int i = 0; i < 20; ++i) {
            scope.spawn(forever());
        }
        (co_await co_wait(1ms)).value();
        scope.request_stop();
        co_return 3;
    }));
    EXPECT_EQ(value, 3);
}

TEST_P(task_scope_io_test, a_stop_of_the_caller_reaches_body_and_children) {
    stop_source stop(executor());
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    auto const whole = [](task_scope& scope) -> task<> {
        scope.spawn(forever());
        co_await forever();
    };
    try {
        run(task_scope::run(whole), stop.token());
        ADD_FAILURE();
    } catch (std::system_error const& e) {
        EXPECT_EQ(e.code(), std::errc::operation_canceled);
    }
}

TEST(task_scope_on_a_pool, ends_after_many_children_on_many_threads) {
    for (int round = 0; round < 20; ++round) {
        thread_pool pool(4);
        std::atomic<int> ran = 0;
        int seen = 0;
        struct family {
            static task<> grow(task_scope& scope, int depth, std::atomic<int>& count) {
                ++count;
                if (depth > 0) {
                    scope.spawn(grow(scope, depth - 1, count));
                    scope.spawn(grow(scope, depth - 1, count));
                }
                co_return;
            }
        };
        auto const whole = [&]() -> task<> {
            co_await task_scope::run(
                [&](task_scope& scope) { return family::grow(scope, 7, ran); });
            seen = ran;
        };
        async_run(pool.get_executor(), whole());
        pool.join();
        ASSERT_EQ(seen, 255);
    }
}

TEST(task_scope_on_a_pool, failures_that_race_leave_it_once) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(3);
        std::string what;
        auto const fail = []() -> task<> {
            throw std::runtime_error("one of them");
            co_return;
        };
        async_run(pool.get_executor(), task_scope::run([&](task_scope& scope) -> task<> {
                      for (int i = 0; i < 6; ++i) {
                          scope.spawn(fail());
                      }
                      co_return;
                  }),
                  {}, [&](task_result<void>& r) {
                      try {
                          r.take();
                      } catch (std::runtime_error const& e) {
                          what = e.what();
                      }
                  });
        pool.join();
        ASSERT_EQ(what, "one of them");
    }
}

TEST(task_scope_on_a_pool, destroyed_with_its_pool_it_destroys_its_children) {
    std::atomic<int> begun = 0;
    int alive = 0;
    {
        gate never;
        auto const wait = [&](gate& g, counted) -> task<> {
            ++begun;
            co_await g;
        };
        thread_pool pool(2);
        async_run(pool.get_executor(), task_scope::run([&](task_scope& scope) -> task<> {
                      scope.spawn(wait(never, counted(alive)));
                      co_return;
                  }));
        pool.join();
        EXPECT_EQ(begun, 1);
        EXPECT_GE(alive, 1);
    }
    EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace plumb::test
