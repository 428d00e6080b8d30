// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/channel.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_any.hpp>

#include "support/allocations.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

class channel_test : public ::testing::Test {
protected:
    /// Writes down each value that it receives, and how it ended.
    template <class T>
    task<> receive_all(channel<T>& c) {
        for (;;) {
            auto got = co_await c.receive();
            if (!got) {
                order += got.error() == error::end_of_stream ? '.' : '-';
                co_return;
            }
            order += static_cast<char>('0' + *got);
        }
    }
    /// Sends these, one after another.
    task<> send_all(channel<int>& c, int first, int last) {
        for (int i = first; i <= last; ++i) {
            int value = i;
            if (auto const sent = co_await c.send(std::move(value)); !sent) {
                order += sent.error() == std::errc::broken_pipe ? '!' : '-';
                co_return;
            }
        }
        order += 's';
    }
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop);
        loop.run();
    }

    manual_loop loop;
    std::string order;
};

TEST_F(channel_test, gives_what_was_sent_in_order) {
    channel<int> c(3);
    launch(send_all(c, 1, 3));
    EXPECT_EQ(order, "s");
    EXPECT_EQ(c.size(), 3u);
    launch(receive_all(c));
    EXPECT_EQ(order, "s123");
    c.close();
    loop.run();
    EXPECT_EQ(order, "s123.");
}

TEST_F(channel_test, a_sender_waits_while_it_is_full) {
    channel<int> c(2);
    launch(send_all(c, 1, 4));
    EXPECT_EQ(order, "");
    EXPECT_EQ(c.size(), 2u);
    EXPECT_EQ(c.try_receive(), 1);
    loop.run();
    EXPECT_EQ(c.size(), 2u) << "the one that waited took the room";
    EXPECT_EQ(c.try_receive(), 2);
    loop.run();
    EXPECT_EQ(order, "s");
    EXPECT_EQ(c.try_receive(), 3);
    EXPECT_EQ(c.try_receive(), 4);
    EXPECT_EQ(c.try_receive().error(), std::errc::resource_unavailable_try_again);
}

TEST_F(channel_test, without_room_hands_each_value_over) {
    channel<int> c(0);
    EXPECT_EQ(c.try_send(1).error(), std::errc::resource_unavailable_try_again);
    launch(send_all(c, 1, 3));
    EXPECT_EQ(order, "");
    launch(receive_all(c));
    EXPECT_EQ(order, "123s");
    c.close();
    loop.run();
}

TEST_F(channel_test, closing_lets_what_is_in_it_be_received) {
    channel<int> c(4);
    launch(send_all(c, 1, 2));
    c.close();
    EXPECT_TRUE(c.closed());
    launch(receive_all(c));
    EXPECT_EQ(order, "s12.");
    EXPECT_EQ(c.try_receive().error(), error::end_of_stream);
}

TEST_F(channel_test, closing_tells_senders_which_keep_their_values) {
    channel<std::unique_ptr<int>> c(1);
    bool kept = false;
    auto const send = [&]() -> task<> {
        auto value = std::make_unique<int>(1);
        (co_await c.send(std::move(value))).value();
        EXPECT_EQ(value, nullptr);
        value = std::make_unique<int>(2);
        auto const sent = co_await c.send(std::move(value));
        EXPECT_EQ(sent.error(), std::errc::broken_pipe);
        kept = value != nullptr && *value == 2;
    };
    launch(send());
    c.close();
    loop.run();
    EXPECT_TRUE(kept);
    auto late = std::make_unique<int>(3);
    EXPECT_EQ(c.try_send(std::move(late)).error(), std::errc::broken_pipe);
    EXPECT_NE(late, nullptr);
    EXPECT_EQ(**c.try_receive(), 1);
}

TEST_F(channel_test, a_stop_ends_a_receive_that_waits) {
    channel<int> c(1);
    stop_source stop(loop.get_executor());
    launch(receive_all(c), stop.token());
    stop.request_stop();
    loop.run();
    ASSERT_TRUE(c.try_send(1));
    EXPECT_EQ(order, "-");
    EXPECT_EQ(c.try_receive(), 1) << "the value was not lost";
}

TEST_F(channel_test, a_value_that_was_given_before_the_stop_is_received) {
    channel<int> c(1);
    stop_source stop(loop.get_executor());
    launch(receive_all(c), stop.token());
    ASSERT_TRUE(c.try_send(1));
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "1-");
}

TEST_F(channel_test, a_stop_ends_a_send_that_waits_and_keeps_the_value) {
    channel<int> c(1);
    stop_source stop(loop.get_executor());
    launch(send_all(c, 1, 3), stop.token());
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    EXPECT_EQ(c.try_receive(), 1);
    EXPECT_EQ(c.try_receive().error(), std::errc::resource_unavailable_try_again);
}

TEST_F(channel_test, a_stop_from_before_neither_sends_nor_receives) {
    channel<int> c(2);
    ASSERT_TRUE(c.try_send(1));
    stop_source stop(loop.get_executor());
    stop.request_stop();
    launch(send_all(c, 2, 2), stop.token());
    launch(receive_all(c), stop.token());
    EXPECT_EQ(order, "--");
    EXPECT_EQ(c.size(), 1u);
}

TEST_F(channel_test, the_loser_of_a_race_takes_no_value) {
    channel<int> one(1);
    channel<int> other(1);
    auto const receive = [](channel<int>& c) -> task<int> {
        co_return (co_await c.receive()).value();
    };
    auto const race = [&]() -> task<> {
        auto [first, tasks] = co_await when_any(receive(one), receive(other));
        order += first == 1 ? 'o' : '?';
    };
    launch(race());
    ASSERT_TRUE(other.try_send(2));
    loop.run();
    EXPECT_EQ(order, "o");
    ASSERT_TRUE(one.try_send(1));
    EXPECT_EQ(one.try_receive(), 1);
}

TEST_F(channel_test, waiters_that_are_destroyed_are_forgotten) {
    channel<int> c(1);
    {
        manual_loop ends;
        async_run(ends.get_executor(), receive_all(c));
        ends.run();
    }
    ASSERT_TRUE(c.try_send(1));
    {
        manual_loop ends;
        async_run(ends.get_executor(), send_all(c, 2, 3));
        ends.run();
    }
    EXPECT_EQ(c.try_receive(), 1);
    EXPECT_EQ(c.size(), 0u);
}

TEST_F(channel_test, destroys_what_is_left_in_it) {
    auto const value = std::make_shared<int>(1);
    {
        channel<std::shared_ptr<int>> c(2);
        ASSERT_TRUE(c.try_send(std::shared_ptr(value)));
        EXPECT_EQ(value.use_count(), 2);
    }
    EXPECT_EQ(value.use_count(), 1);
}

TEST_F(channel_test, allocates_nothing_once_it_is_made) {
    channel<int> c(2);
    auto const before = heap_allocations();
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(c.try_send(int(i)));
        ASSERT_EQ(c.try_receive(), i);
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
}

// On threads.

TEST(channel_on_a_pool, many_senders_and_receivers_lose_nothing_and_keep_order) {
    for (std::size_t const capacity : {0u, 1u, 7u}) {
        constexpr int senders = 4;
        constexpr int values = 300;
        thread_pool pool(4);
        channel<std::pair<int, int>> c(capacity);
        std::atomic<int> sending = senders;
        std::atomic<int> received = 0;
        auto const send = [&](int who) -> task<> {
            for (int i = 0; i < values; ++i) {
                (co_await c.send(std::pair(who, i))).value();
            }
            if (--sending == 0) {
                c.close();
            }
        };
        auto const receive = [&]() -> task<> {
            std::vector<int> last(senders, -1);
            for (;;) {
                auto const got = co_await c.receive();
                if (!got) {
                    EXPECT_EQ(got.error(), error::end_of_stream);
                    co_return;
                }
                auto const [who, i] = *got;
                EXPECT_GT(i, last[static_cast<std::size_t>(who)]);
                last[static_cast<std::size_t>(who)] = i;
                ++received;
            }
        };
        for (int i = 0; i < senders; ++i) {
            async_run(pool.get_executor(), send(i));
        }
        for (int i = 0; i < 3; ++i) {
            async_run(pool.get_executor(), receive());
        }
        pool.join();
        ASSERT_EQ(received, senders * values);
    }
}

TEST(channel_on_a_pool, stops_that_race_lose_no_value) {
    for (int round = 0; round < 100; ++round) {
        thread_pool pool(3);
        channel<int> c(1);
        std::atomic<int> sent = 0;
        std::atomic<int> received = 0;
        auto const send = [&]() -> task<> {
            for (int i = 0; i < 10; ++i) {
                auto const done = co_await c.send(int(i));
                if (!done) {
                    co_return;
                }
                ++sent;
            }
        };
        auto const receive = [&]() -> task<> {
            for (;;) {
                auto const got = co_await c.receive();
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
        ASSERT_EQ(sent, received + static_cast<int>(c.size()));
    }
}

TEST(channel_on_threads, crosses_contexts_of_different_kinds) {
    io_context context;
    thread_pool pool(2);
    channel<int> there(4);
    channel<int> back(4);
    long sum = 0;
    std::optional<work_guard> keep(context.get_executor());
    auto const serve = [&]() -> task<> {
        for (;;) {
            auto const got = co_await there.receive();
            if (!got) {
                back.close();
                co_return;
            }
            (co_await back.send(*got * 2)).value();
        }
    };
    auto const ask = [&]() -> task<> {
        for (int i = 1; i <= 500; ++i) {
            (co_await there.send(int(i))).value();
            sum += (co_await back.receive()).value();
        }
        there.close();
        keep.reset();
    };
    async_run(pool.get_executor(), serve());
    async_run(context.get_executor(), ask());
    ASSERT_TRUE(context.run());
    pool.join();
    EXPECT_EQ(sum, 500 * 501);
}

}  // namespace
}  // namespace plumb::test
