// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/run_on.hpp>

#include <plumb/io/async_wait.hpp>

#include "support/context.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// Two loops, both driven by the test.
class run_on_test : public ::testing::Test {
protected:
    /// Runs both until neither has anything left.
    void run_both() {
        while (home.run() + away.run() != 0) {
        }
    }

    manual_loop home;
    manual_loop away;
};

TEST_F(run_on_test, runs_there_and_returns_here) {
    std::string order;
    auto const where = [&] { order += away.get_executor().running_in_this_thread() ? 't' : 'h'; };
    auto const there = [&]() -> task<int> {
        where();
        EXPECT_EQ((co_await this_env()).executor, executor_ref(away.get_executor()));
        co_return 5;
    };
    int got = 0;
    auto const here = [&]() -> task<> {
        where();
        got = co_await run_on(away.get_executor(), there());
        where();
        EXPECT_EQ((co_await this_env()).executor, executor_ref(home.get_executor()));
    };
    async_run(home.get_executor(), here());
    home.run();
    EXPECT_EQ(order, "h");
    away.run();
    EXPECT_EQ(order, "ht");
    home.run();
    EXPECT_EQ(order, "hth");
    EXPECT_EQ(got, 5);
    EXPECT_TRUE(home.roots().empty());
}

TEST_F(run_on_test, throws_here_what_was_thrown_there) {
    auto const there = []() -> task<int> {
        throw std::runtime_error("there");
        co_return 1;
    };
    bool caught = false;
    auto const here = [&]() -> task<> {
        try {
            (void)co_await run_on(away.get_executor(), there());
        } catch (std::runtime_error const&) {
            caught = !away.get_executor().running_in_this_thread();
        }
    };
    async_run(home.get_executor(), here());
    run_both();
    EXPECT_TRUE(caught);
}

TEST_F(run_on_test, gives_references_nothing_and_what_can_only_be_moved) {
    int object = 0;
    auto const refer = [&]() -> task<int&> { co_return object; };
    auto const nothing = [&]() -> task<> { co_return; };
    auto const made = [&]() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(3); };
    int done = 0;
    auto const here = [&]() -> task<> {
        EXPECT_EQ(&co_await run_on(away.get_executor(), refer()), &object);
        co_await run_on(away.get_executor(), nothing());
        EXPECT_EQ(*co_await run_on(away.get_executor(), made()), 3);
        ++done;
    };
    async_run(home.get_executor(), here());
    run_both();
    EXPECT_EQ(done, 1);
}

TEST_F(run_on_test, can_run_on_the_executor_it_is_on) {
    auto const there = []() -> task<int> { co_return 7; };
    auto const here = [&]() -> task<int> {
        co_return co_await run_on(home.get_executor(), there());
    };
    EXPECT_EQ(home.run(here()), 7);
}

TEST_F(run_on_test, nests) {
    auto const innermost = [&]() -> task<int> {
        EXPECT_TRUE(home.get_executor().running_in_this_thread());
        co_return 1;
    };
    auto const there = [&]() -> task<int> {
        int const got = co_await run_on(home.get_executor(), innermost());
        EXPECT_TRUE(away.get_executor().running_in_this_thread());
        co_return got + 1;
    };
    int got = 0;
    auto const here = [&]() -> task<> { got = co_await run_on(away.get_executor(), there()); };
    async_run(home.get_executor(), here());
    run_both();
    EXPECT_EQ(got, 2);
}

TEST_F(run_on_test, a_stop_from_before_reaches_it) {
    stop_source stop(home.get_executor());
    stop.request_stop();
    home.run();
    bool seen = false;
    auto const there = [&]() -> task<> { seen = (co_await this_env()).stop.stop_requested(); };
    auto const here = [&]() -> task<> { co_await run_on(away.get_executor(), there()); };
    async_run(home.get_executor(), here(), stop.token());
    run_both();
    EXPECT_TRUE(seen);
    EXPECT_TRUE(home.roots().empty());
}

TEST_F(run_on_test, a_stop_during_it_is_forwarded_to_its_callbacks_there) {
    stop_source stop(home.get_executor());
    gate closed;
    int called = 0;
    auto const there = [&]() -> task<> {
        auto const count = [&]() noexcept {
            called += away.get_executor().running_in_this_thread() ? 1 : 100;
        };
        stop_callback const on_stop((co_await this_env()).stop, count);
        co_await closed;
    };
    auto const here = [&]() -> task<> { co_await run_on(away.get_executor(), there()); };
    async_run(home.get_executor(), here(), stop.token());
    run_both();
    ASSERT_TRUE(closed.awaited());
    stop.request_stop();
    run_both();
    EXPECT_EQ(called, 1);
    closed.open();
    run_both();
    EXPECT_TRUE(home.roots().empty());
}

TEST_F(run_on_test, a_stop_that_is_on_its_way_there_when_the_task_ends_is_waited_for) {
    stop_source stop(home.get_executor());
    auto const there = []() -> task<int> { co_return 4; };
    int got = 0;
    auto const here = [&]() -> task<> { got = co_await run_on(away.get_executor(), there()); };
    async_run(home.get_executor(), here(), stop.token());
    home.run();
    away.run();  // the task has ended; its end waits at home
    stop.request_stop();
    run_both();
    EXPECT_EQ(got, 4);
    EXPECT_TRUE(home.roots().empty());
}

TEST_F(run_on_test, destroyed_before_its_start_runs_nothing) {
    int alive = 0;
    auto const there = [](counted) -> task<> {
        ADD_FAILURE();
        co_return;
    };
    {
        auto const t = run_on(away.get_executor(), there(counted(alive)));
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(run_on_test, ends_with_its_loop_once_the_other_loop_has_ended) {
    int alive = 0;
    {
        manual_loop first;
        {
            manual_loop second;
            auto const there = [&](counted) -> task<> {
                gate never;
                co_await never;
            };
            auto const here = [&]() -> task<> {
                co_await run_on(second.get_executor(), there(counted(alive)));
            };
            async_run(first.get_executor(), here());
            first.run();
            second.run();
            EXPECT_GE(alive, 1);
        }
    }
    EXPECT_EQ(alive, 0);
}

using run_on_death_test = run_on_test;

TEST_F(run_on_death_test, a_task_that_was_awaited_before_is_refused) {
    auto const twice = [&]() -> task<> {
        auto t = []() -> task<> { co_return; }();
        co_await t;
        co_await run_on(away.get_executor(), std::move(t));
    };
    EXPECT_DEATH(
        {
            async_run(home.get_executor(), twice());
            run_both();
        },
        "plumb: run_on was given a task that was awaited before");
}

/// Two contexts on two threads.
class run_on_thread_test : public on_every_context {
protected:
    void SetUp() override {
        on_every_context::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            away_ = std::make_unique<io_context>(on_every_context::another());
            away_->multiplexer().work_started();
            thread_ = std::thread([this] { (void)away_->run().value(); });
        }
    }
    void TearDown() override {
        if (thread_.joinable()) {
            away_->multiplexer().work_finished();
            thread_.join();
        }
        on_every_context::TearDown();
        away_.reset();
    }

    [[nodiscard]] io_context::executor_type const& away() noexcept { return away_->get_executor(); }
    [[nodiscard]] std::thread::id there() const noexcept { return thread_.get_id(); }

private:
    std::unique_ptr<io_context> away_;
    std::thread thread_;
};

INSTANTIATE_TEST_SUITE_P(backends, run_on_thread_test, real_backends(), name_of_backend);

TEST_P(run_on_thread_test, runs_on_the_other_thread_and_returns_to_this) {
    auto const here = std::this_thread::get_id();
    auto const look = []() -> task<std::thread::id> { co_return std::this_thread::get_id(); };
    auto const go = [&]() -> task<> {
        EXPECT_EQ(co_await run_on(away(), look()), there());
        EXPECT_EQ(std::this_thread::get_id(), here);
    };
    run(go());
}

TEST_P(run_on_thread_test, does_io_there) {
    auto const wait = []() -> task<bool> { co_return (co_await co_wait(1ms)).has_value(); };
    auto const go = [&]() -> task<bool> { co_return co_await run_on(away(), wait()); };
    EXPECT_TRUE(run(go()));
}

TEST_P(run_on_thread_test, throws_on_this_thread_what_was_thrown_there) {
    auto const here = std::this_thread::get_id();
    auto const fail = []() -> task<> {
        throw std::runtime_error("there");
        co_return;
    };
    auto const go = [&]() -> task<bool> {
        try {
            co_await run_on(away(), fail());
        } catch (std::runtime_error const&) {
            co_return std::this_thread::get_id() == here;
        }
        co_return false;
    };
    EXPECT_TRUE(run(go()));
}

TEST_P(run_on_thread_test, goes_there_and_back_a_hundred_thousand_times) {
    auto const there = [](int i) -> task<int> { co_return i + 1; };
    auto const go = [&]() -> task<int> {
        int i = 0;
        while (i < 100'000) {
            i = co_await run_on(away(), there(i));
        }
        co_return i;
    };
    EXPECT_EQ(run(go()), 100'000);
}

TEST_P(run_on_thread_test, the_context_runs_on_while_a_task_is_elsewhere) {
    // Nothing but the task's way home keeps the context running.
    auto const wait = []() -> task<> { (void)co_await co_wait(20ms); };
    bool back = false;
    auto const go = [&]() -> task<> {
        co_await run_on(away(), wait());
        back = true;
    };
    launch(go());
    run();
    EXPECT_TRUE(back);
}

TEST_P(run_on_thread_test, a_stop_is_forwarded_to_the_operation_there) {
    stop_source stop(executor());
    auto const wait = []() -> task<std::error_code> {
        auto const r = co_await co_wait(1h);
        co_return r ? std::error_code() : r.error();
    };
    auto const go = [&]() -> task<std::error_code> { co_return co_await run_on(away(), wait()); };
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(5ms);
        stop.request_stop();
    };
    launch(request());
    EXPECT_EQ(run(go(), stop.token()), std::errc::operation_canceled);
}

TEST_P(run_on_thread_test, a_stop_may_race_the_end) {
    int canceled = 0;
    constexpr int rounds = 2000;
    for (int round = 0; round < rounds; ++round) {
        stop_source stop(executor());
        auto const wait = [&]() -> task<bool> {
            for (int i = 0; i < round % 4; ++i) {
                if (!co_await co_wait(1us)) {
                    co_return true;
                }
            }
            co_return (co_await this_env()).stop.stop_requested();
        };
        auto const go = [&]() -> task<bool> { co_return co_await run_on(away(), wait()); };
        auto const request = [&]() -> task<> {
            if (round % 3 != 0) {
                (void)co_await co_wait(std::chrono::microseconds(round % 60));
            }
            stop.request_stop();
        };
        launch(request());
        canceled += run(go(), stop.token()) ? 1 : 0;
        run();
    }
    EXPECT_LE(canceled, rounds);
    RecordProperty("canceled", canceled);
}

TEST_P(run_on_thread_test, a_stop_of_a_third_thread_is_forwarded_too) {
    for (int round = 0; round < 200; ++round) {
        stop_source stop(executor());
        std::atomic<bool> started = false;
        std::thread third([&] {
            while (!started) {
            }
            stop.request_stop();
        });
        auto const wait = [&]() -> task<std::error_code> {
            started = true;
            auto const r = co_await co_wait(1h);
            co_return r ? std::error_code() : r.error();
        };
        auto const go = [&]() -> task<std::error_code> {
            co_return co_await run_on(away(), wait());
        };
        EXPECT_EQ(run(go(), stop.token()), std::errc::operation_canceled);
        third.join();
        run();
    }
}

}  // namespace
}  // namespace plumb::test
