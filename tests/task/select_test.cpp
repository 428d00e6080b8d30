// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/select.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/channel.hpp>
#include <plumb/task/event.hpp>
#include <plumb/task/latch.hpp>
#include <plumb/task/semaphore.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/with_deadline.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class select_test : public ::testing::Test {
protected:
    /// Writes down which case it was, and what came; or how it ended.
    task<> receive_one_of(channel<int>& one, channel<int>& other) {
        auto const got = co_await select(one.receive(), other.receive());
        note(got);
    }
    template <class Got>
    void note(Got const& got) {
        if (!got) {
            order += got.error() == std::errc::operation_canceled ? '-' : '0';
            return;
        }
        auto const& value = got->index() == 0 ? std::get<0>(*got) : std::get<1>(*got);
        order += got->index() == 0 ? 'a' : 'b';
        order += value ? static_cast<char>('0' + *value) : '.';
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    channel<int> a{1};
    channel<int> b{1};
    std::string order;
};

TEST_F(select_test, gives_what_is_there_without_suspending) {
    ASSERT_TRUE(b.try_send(1));
    async_run(loop.get_executor(), receive_one_of(a, b));
    EXPECT_TRUE(loop.run_one());
    EXPECT_EQ(order, "b1");
    EXPECT_EQ(loop.count(), 0u);
}

TEST_F(select_test, waits_for_the_first_and_takes_nothing_else) {
    launch(receive_one_of(a, b));
    ASSERT_TRUE(b.try_send(1));
    ASSERT_TRUE(a.try_send(2)) << "it goes into the channel, since the other was first";
    loop.run();
    EXPECT_EQ(order, "b1");
    EXPECT_EQ(a.try_receive(), 2);
    EXPECT_EQ(b.size(), 0u);
}

TEST_F(select_test, who_was_given_something_elsewhere_is_passed_over) {
    channel<int> without_room(0);
    launch(receive_one_of(a, without_room));
    ASSERT_TRUE(a.try_send(1));
    EXPECT_EQ(without_room.try_send(2).error(), std::errc::resource_unavailable_try_again);
    launch(receive_one_of(a, without_room));
    launch(receive_one_of(a, without_room));
    ASSERT_TRUE(without_room.try_send(3)) << "the next in the queue gets it";
    loop.run();
    EXPECT_EQ(order, "a1b3");
    a.close();
    loop.run();
    EXPECT_EQ(order, "a1b3a.");
}

TEST_F(select_test, sends_to_the_first_that_has_room_and_keeps_the_other_value) {
    channel<std::unique_ptr<int>> first(1);
    channel<std::unique_ptr<int>> second(1);
    ASSERT_TRUE(first.try_send(std::make_unique<int>(0)));
    auto const send = [&]() -> task<> {
        auto one = std::make_unique<int>(1);
        auto other = std::make_unique<int>(2);
        auto const at_once =
            co_await select(first.send(std::move(one)), second.send(std::move(other)));
        EXPECT_EQ(at_once->index(), 1u);
        EXPECT_TRUE(std::get<1>(*at_once));
        EXPECT_NE(one, nullptr);
        EXPECT_EQ(other, nullptr);
        auto more = std::make_unique<int>(3);
        auto const later =
            co_await select(first.send(std::move(one)), second.send(std::move(more)));
        EXPECT_EQ(later->index(), 0u);
        EXPECT_EQ(one, nullptr);
        EXPECT_NE(more, nullptr);
        order += 's';
    };
    launch(send());
    EXPECT_EQ(order, "");
    EXPECT_EQ(**first.try_receive(), 0);
    EXPECT_EQ(**second.try_receive(), 2);
    loop.run();
    EXPECT_EQ(order, "s");
    EXPECT_EQ(**first.try_receive(), 1);
    EXPECT_EQ(second.size(), 0u);
}

TEST_F(select_test, two_that_wait_for_one_another_meet_once) {
    channel<int> c(0);
    auto const either = [&](int value) -> task<> {
        auto const done = co_await select(c.send(std::move(value)), c.receive());
        order += done->index() == 0 ? 's' : static_cast<char>('0' + *std::get<1>(*done));
    };
    launch(either(1));
    EXPECT_EQ(order, "") << "it doesn't meet itself";
    launch(either(2));
    EXPECT_TRUE(order == "1s" || order == "2s" || order == "s1" || order == "s2") << order;
    EXPECT_FALSE(c.try_receive());
    EXPECT_FALSE(c.try_send(3));
}

TEST_F(select_test, tells_of_a_channel_that_is_closed) {
    a.close();
    launch(receive_one_of(a, b));
    EXPECT_EQ(order, "a.");
    channel<int> closes(1);
    launch(receive_one_of(b, closes));
    closes.close();
    loop.run();
    EXPECT_EQ(order, "a.b.");
    auto const send = [&]() -> task<> {
        auto const sent = co_await select(b.receive(), closes.send(1));
        EXPECT_EQ(sent->index(), 1u);
        EXPECT_EQ(std::get<1>(*sent).error(), std::errc::broken_pipe);
        order += '!';
    };
    launch(send());
    EXPECT_EQ(order, "a.b.!");
}

TEST_F(select_test, leaves_out_what_is_closed_until_all_are) {
    ASSERT_TRUE(a.try_send(1));
    ASSERT_TRUE(b.try_send(2));
    a.close();
    auto const merge = [&]() -> task<> {
        bool open[] = {true, true};
        int sum = 0;
        for (;;) {
            auto const got =
                co_await select(only_if(open[0], a.receive()), only_if(open[1], b.receive()));
            if (!got) {
                EXPECT_EQ(got.error(), error::end_of_stream);
                break;
            }
            auto const& value = got->index() == 0 ? std::get<0>(*got) : std::get<1>(*got);
            open[got->index()] = value.has_value();
            sum += value ? *value : 0;
        }
        EXPECT_EQ(sum, 6);
        order += 'e';
    };
    launch(merge());
    EXPECT_EQ(order, "") << "it waits for the other";
    ASSERT_TRUE(b.try_send(3));
    loop.run();
    b.close();
    loop.run();
    EXPECT_EQ(order, "e");
}

TEST_F(select_test, a_stop_from_before_is_seen_though_all_are_left_out) {
    auto const none = [&]() -> task<std::error_code> {
        auto const got = co_await select(only_if(false, a.receive()), only_if(false, b.receive()));
        co_return got.error();
    };
    EXPECT_EQ(loop.run(none()), error::end_of_stream);
    stop_source stop(loop.get_executor());
    stop.request_stop();
    EXPECT_EQ(loop.run(none(), stop.token()), std::errc::operation_canceled);
}

TEST_F(select_test, is_fair_among_those_that_are_ready) {
    constexpr int rounds = 3000;
    channel<int> never(1);
    std::array<int, 3> taken{};
    auto const take = [&]() -> task<> {
        for (int i = 0; i < rounds; ++i) {
            (void)a.try_send(1);
            (void)b.try_send(1);
            auto const got = co_await select(never.receive(), a.receive(), b.receive());
            ++taken[got->index()];
        }
    };
    launch(take());
    EXPECT_EQ(taken[0], 0);
    EXPECT_NEAR(taken[1], rounds / 2, rounds / 10);
    EXPECT_NEAR(taken[2], rounds / 2, rounds / 10);
}

TEST_F(select_test, a_stop_ends_it_and_loses_nothing) {
    stop_source stop(loop.get_executor());
    launch(receive_one_of(a, b), stop.token());
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    ASSERT_TRUE(a.try_send(1));
    ASSERT_TRUE(b.try_send(2));
    EXPECT_EQ(a.try_receive(), 1);
    EXPECT_EQ(b.try_receive(), 2);
}

TEST_F(select_test, a_stop_from_before_takes_nothing) {
    ASSERT_TRUE(a.try_send(1));
    stop_source stop(loop.get_executor());
    stop.request_stop();
    launch(receive_one_of(a, b), stop.token());
    EXPECT_EQ(order, "-");
    EXPECT_EQ(a.size(), 1u);
}

TEST_F(select_test, what_was_given_before_the_stop_is_had) {
    stop_source stop(loop.get_executor());
    launch(receive_one_of(a, b), stop.token());
    ASSERT_TRUE(b.try_send(1));
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "b1");
}

TEST_F(select_test, a_time_out_ends_it) {
    io_context context;
    auto const wait = [&]() -> task<> { co_await receive_one_of(a, b); };
    auto const with_time_out = [&]() -> task<> {
        co_await with_timeout(1ms, wait());
        order += 't';
    };
    async_run(context.get_executor(), with_time_out());
    ASSERT_TRUE(context.run());
    EXPECT_EQ(order, "-t");
    ASSERT_TRUE(a.try_send(1));
    EXPECT_EQ(a.try_receive(), 1);
}

TEST_F(select_test, also_takes_events_latches_and_semaphores) {
    event quit(event::reset_by::waiter);
    latch done(1);
    semaphore permits(0);
    auto const wait = [&]() -> task<> {
        for (;;) {
            auto const which =
                co_await select(quit.wait(), done.wait(), permits.acquire(), a.receive());
            order += static_cast<char>('0' + which->index());
            if (which->index() == 1) {
                co_return;
            }
        }
    };
    launch(wait());
    permits.release();
    quit.set();
    loop.run();
    EXPECT_EQ(order, "20") << "the event stayed set until its turn";
    permits.release();
    loop.run();
    EXPECT_EQ(permits.available(), 0u);
    done.count_down();
    loop.run();
    EXPECT_EQ(order, "2021");
    permits.release();
    EXPECT_EQ(permits.available(), 1u) << "nobody waits any more";
}

TEST_F(select_test, one_that_is_destroyed_is_forgotten_and_gives_back_what_it_got) {
    semaphore permits(0);
    auto const wait = [&]() -> task<> { (void)co_await select(a.receive(), permits.acquire()); };
    {
        manual_loop ends;
        async_run(ends.get_executor(), wait());
        ends.run();
    }
    ASSERT_TRUE(a.try_send(1));
    EXPECT_EQ(a.try_receive(), 1);
    {
        manual_loop ends;
        async_run(ends.get_executor(), wait());
        ends.run();
        permits.release();
    }
    EXPECT_EQ(permits.available(), 1u);
    EXPECT_EQ(a.size(), 0u);
}

TEST_F(select_test, allocates_nothing) {
    auto const take = [&]() -> task<> {
        std::uint64_t before = 0;
        for (int i = 0; i < 100; ++i) {
            before = i == 10 ? heap_allocations() : before;
            (void)co_await select(a.receive(), b.receive());
        }
        EXPECT_EQ(heap_allocations() - before, 0u);
        order += 'e';
    };
    launch(take());
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE((i % 2 == 0 ? a : b).try_send(int(i)));
        loop.run();
    }
    EXPECT_EQ(order, "e");
}

// On threads.

TEST(select_on_a_pool, senders_and_receivers_of_several_channels_lose_nothing) {
    for (std::size_t const capacity : {0u, 1u}) {
        constexpr int values = 400;
        thread_pool pool(4);
        channel<int> first(capacity);
        channel<int> second(capacity);
        std::atomic<int> sending = 3;
        std::atomic<long> sent = 0;
        std::atomic<long> received = 0;
        // In either order, so that the locks are taken in one.
        auto const send = [&](channel<int>& one, channel<int>& other) -> task<> {
            for (int i = 1; i <= values; ++i) {
                int value = i;
                int same = i;
                auto const done =
                    co_await select(one.send(std::move(value)), other.send(std::move(same)));
                sent += done ? i : 0;
            }
            if (--sending == 0) {
                first.close();
                second.close();
            }
        };
        auto const receive = [&](channel<int>& one, channel<int>& other) -> task<> {
            bool open[] = {true, true};
            for (;;) {
                auto const got = co_await select(only_if(open[0], one.receive()),
                                                 only_if(open[1], other.receive()));
                if (!got) {
                    co_return;
                }
                auto const& value = got->index() == 0 ? std::get<0>(*got) : std::get<1>(*got);
                open[got->index()] = value.has_value();
                received += value ? *value : 0;
            }
        };
        async_run(pool.get_executor(), send(first, second));
        async_run(pool.get_executor(), send(second, first));
        async_run(pool.get_executor(), send(first, second));
        async_run(pool.get_executor(), receive(second, first));
        async_run(pool.get_executor(), receive(first, second));
        pool.join();
        ASSERT_EQ(sent, 3L * values * (values + 1) / 2);
        ASSERT_EQ(received, sent);
    }
}

TEST(select_on_a_pool, those_that_may_both_send_and_receive_meet_in_pairs) {
    constexpr int each = 300;
    constexpr int parties = 4;
    thread_pool pool(4);
    channel<int> left(0);
    channel<int> right(0);
    std::atomic<int> sent = 0;
    std::atomic<int> received = 0;
    std::atomic<int> going = parties;
    auto const party = [&](channel<int>& one, channel<int>& other) -> task<> {
        for (int i = 0; i < each; ++i) {
            auto const met =
                co_await select(one.send(1), other.receive(), other.send(1), one.receive());
            if (!std::visit([](auto const& r) { return r.has_value(); }, *met)) {
                break;  // closed
            }
            bool const sends = met->index() % 2 == 0;
            (sends ? sent : received) += 1;
        }
        if (--going == 1) {  // nobody is left to meet the last
            left.close();
            right.close();
        }
    };
    for (int i = 0; i < parties; ++i) {
        async_run(pool.get_executor(), i % 2 == 0 ? party(left, right) : party(right, left));
    }
    pool.join();
    EXPECT_EQ(sent, received);
    EXPECT_GE(sent + received, each * (parties - 1));
}

TEST(select_on_a_pool, stops_that_race_lose_no_value) {
    for (int round = 0; round < 60; ++round) {
        thread_pool pool(3);
        channel<int> first(1);
        channel<int> second(0);
        std::atomic<int> sent = 0;
        std::atomic<int> received = 0;
        auto const send = [&]() -> task<> {
            for (int i = 0; i < 10; ++i) {
                auto const done = co_await select(first.send(1), second.send(1));
                if (!done) {
                    co_return;
                }
                ++sent;
            }
        };
        auto const receive = [&]() -> task<> {
            for (;;) {
                auto const got = co_await select(second.receive(), first.receive());
                if (!got) {
                    co_return;
                }
                ++received;
            }
        };
        async_run(pool.get_executor(), task_scope::run([&](task_scope& scope) -> task<> {
                      for (int i = 0; i < 3; ++i) {
                          scope.spawn(send());
                          scope.spawn(receive());
                      }
                      std::this_thread::yield();
                      scope.request_stop();
                      co_return;
                  }));
        pool.join();
        ASSERT_EQ(sent, received + static_cast<int>(first.size()));
    }
}

}  // namespace
}  // namespace plumb::test
