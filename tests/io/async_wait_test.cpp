// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_wait.hpp>

#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <memory>
#include <string>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// Timers on every backend.
class timer_test : public on_every_backend {
protected:
    record_of<async_wait> waited;

    bool await_timer() {
        return drive_until([&] { return waited.done(); });
    }
};

INSTANTIATE_TEST_SUITE_P(backends, timer_test, every_backend(), name_of_backend);

TEST_P(timer_test, ends_at_its_time_and_not_before) {
    for (int clock = 0; clock < 3; ++clock) {
        waited = {};
        auto const before = now();
        deadline const when = clock == 0   ? deadline(20ms)
                              : clock == 1 ? deadline(before + 20ms)
                                           : deadline(system_now() + 20ms);
        auto operation = connect(async_wait(multiplexer(), when), recorder(waited));
        ASSERT_EQ(operation.start(), io_status::pending);
        EXPECT_TRUE(waited.untold());
        ASSERT_TRUE(await_timer());
        EXPECT_TRUE(*waited.value) << waited.value->error().message();
        EXPECT_GE(now() - before, clock == 2 ? 19ms : 20ms);
    }
}

TEST_P(timer_test, waits_less_than_a_millisecond_without_spinning) {
    auto const turns = multiplexer().counters().turns;
    auto operation = connect(async_wait(multiplexer(), 300us), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(await_timer());
    EXPECT_LE(multiplexer().counters().turns - turns, 10u);
}

TEST_P(timer_test, a_wait_of_nothing_or_for_the_past_completes_at_once) {
    for (deadline const when :
         {deadline(0s), deadline(-1s), deadline(now() - 1h), deadline(system_now() - 1h)}) {
        waited = {};
        auto operation = connect(async_wait(multiplexer(), when), recorder(waited));
        EXPECT_EQ(operation.start(), io_status::completed);
        EXPECT_TRUE(waited.untold());
        ASSERT_TRUE(await_timer());
        EXPECT_TRUE(*waited.value);
    }
}

TEST_P(timer_test, started_anew_for_the_past_it_starves_nobody) {
    int rounds = 0;
    std::optional<io_operation_connection<async_wait, calling_for<async_wait>>> past;
    past.emplace(async_wait(multiplexer(), now() - 1s),
                 calling_for<async_wait>{[](auto&&) {},
                                         [&] {
                                             ++rounds;
                                             past->reset();
                                             (void)past->start();
                                         }});
    auto other = connect(async_wait(multiplexer(), 1ms), recorder(waited));
    ASSERT_EQ(other.start(), io_status::pending);
    (void)past->start();
    ASSERT_TRUE(await_timer());
    EXPECT_GT(rounds, 0);
}

TEST_P(timer_test, equal_times_keep_their_order) {
    auto const when = now() + 5ms;
    std::vector<int> order;
    std::vector<std::unique_ptr<io_operation_connection<async_wait, calling_for<async_wait>>>>
        timers;
    for (int i = 0; i < 50; ++i) {
        timers.push_back(
            std::make_unique<io_operation_connection<async_wait, calling_for<async_wait>>>(
                async_wait(multiplexer(), when),
                calling_for<async_wait>{[](auto&&) {}, [&, i] { order.push_back(i); }}));
        (void)timers.back()->start();
    }
    ASSERT_TRUE(drive_until([&] { return order.size() == 50; }));
    EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_P(timer_test, different_times_end_in_their_order) {
    std::vector<int> order;
    std::vector<std::unique_ptr<io_operation_connection<async_wait, calling_for<async_wait>>>>
        timers;
    for (int const ms : {9, 3, 7, 1, 5}) {
        timers.push_back(
            std::make_unique<io_operation_connection<async_wait, calling_for<async_wait>>>(
                async_wait(multiplexer(), std::chrono::milliseconds(ms)),
                calling_for<async_wait>{[](auto&&) {}, [&, ms] { order.push_back(ms); }}));
        (void)timers.back()->start();
    }
    ASSERT_TRUE(drive_until([&] { return order.size() == 5; }));
    EXPECT_EQ(order, (std::vector{1, 3, 5, 7, 9}));
}

TEST_P(timer_test, a_receiver_may_cancel_or_destroy_another_timer) {
    auto const when = now() + 2ms;
    record_of<async_wait> canceled;
    record_of<async_wait> destroyed;
    auto second = connect(async_wait(multiplexer(), when), recorder(canceled));
    auto third =
        std::make_unique<decltype(second)>(async_wait(multiplexer(), when), recorder(destroyed));
    bool told = false;
    auto first =
        connect(async_wait(multiplexer(), when), calling_for<async_wait>{[](auto&&) {},
                                                                         [&] {
                                                                             second.cancel();
                                                                             third.reset();
                                                                             told = true;
                                                                         }});
    (void)first.start();
    (void)second.start();
    (void)third->start();
    ASSERT_TRUE(drive_until([&] { return told && canceled.done(); }));
    EXPECT_EQ(canceled.value->error(), std::errc::operation_canceled);
    EXPECT_TRUE(destroyed.untold());
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

TEST_P(timer_test, cancel_ends_it_early) {
    auto operation = connect(async_wait(multiplexer(), 1h), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    operation.cancel();
    EXPECT_TRUE(waited.untold());
    ASSERT_TRUE(await_timer());
    EXPECT_EQ(waited.value->error(), std::errc::operation_canceled);
}

TEST_P(timer_test, without_end_it_waits_for_cancellation) {
    auto operation = connect(async_wait(multiplexer(), deadline()), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_LT(multiplexer().try_run_for(1ms).value(), 0);
    operation.cancel();
    ASSERT_TRUE(await_timer());
    EXPECT_EQ(waited.value->error(), std::errc::operation_canceled);
}

TEST_P(timer_test, a_time_further_than_the_clock_reaches_never_comes) {
    auto operation =
        connect(async_wait(multiplexer(), std::chrono::nanoseconds::max() - 1ns), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_LT(multiplexer().try_run_for(1ms).value(), 0);
    EXPECT_TRUE(waited.untold());
}

TEST_P(timer_test, the_multiplexer_may_end_first) {
    auto endless = connect(async_wait(multiplexer(), deadline()), recorder(waited));
    auto long_one = connect(async_wait(multiplexer(), 1h), recorder(waited));
    auto system = connect(async_wait(multiplexer(), system_now() + 1h), recorder(waited));
    auto queued = connect(async_wait(multiplexer(), 0s), recorder(waited));
    ASSERT_EQ(endless.start(), io_status::pending);
    ASSERT_EQ(long_one.start(), io_status::pending);
    ASSERT_EQ(system.start(), io_status::pending);
    ASSERT_EQ(queued.start(), io_status::completed);
    end_multiplexer();
    EXPECT_TRUE(waited.untold());
}

TEST_P(timer_test, destroyed_it_is_forgotten) {
    {
        auto operation = connect(async_wait(multiplexer(), 1ms), recorder(waited));
        ASSERT_EQ(operation.start(), io_status::pending);
        auto endless = connect(async_wait(multiplexer(), deadline()), recorder(waited));
        ASSERT_EQ(endless.start(), io_status::pending);
    }
    EXPECT_EQ(multiplexer().run().value(), 0);
    EXPECT_TRUE(waited.untold());
}

TEST_P(timer_test, poll_ends_it_when_it_is_due) {
    auto operation = connect(async_wait(multiplexer(), 2ms), recorder(waited));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_EQ(operation.poll(), io_status::pending);
    auto const due = now() + 2ms;
    // Another timer lets the time pass, also where it is simulated.
    record_of<async_wait> other;
    {
        auto m = another();
        auto sleep = connect(async_wait(*m, due), recorder(other));
        (void)sleep.start();
        ASSERT_TRUE(drive_until(*m, [&] { return other.done(); }));
    }
    EXPECT_EQ(operation.poll(), io_status::completed);
    EXPECT_EQ(waited.dones, 1);
    EXPECT_TRUE(*waited.value);
}

}  // namespace
}  // namespace plumb::test
