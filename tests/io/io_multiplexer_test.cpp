// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_multiplexer.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class io_multiplexer_test : public on_every_backend {
protected:
    stream_socket_handle::pair tcp;
    std::array<std::byte, 64> memory{};
    record_of<async_read> read;
    record_of<async_wait> waited;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            tcp = tcp_pair();
        }
    }
    auto reading(deadline limit = {}) {
        return connect(async_read(tcp.second, buffer(memory), limit), recorder(read));
    }
    auto waiting(deadline when) {
        return connect(async_wait(multiplexer(), when), recorder(waited));
    }
    void send(std::string const& text) {
        ASSERT_EQ(tcp.first.write(bytes_of(text), patience).bytes_transferred(), text.size());
    }
    /// Lets time pass without driving the multiplexer.
    void pass(std::chrono::nanoseconds time) {
        record_of<async_wait> other;
        auto m = another();
        auto sleep = connect(async_wait(*m, time), recorder(other));
        (void)sleep.start();
        ASSERT_TRUE(drive_until(*m, [&] { return other.done(); }));
    }
};

INSTANTIATE_TEST_SUITE_P(backends, io_multiplexer_test, every_backend(), name_of_backend);

// Returns: positive what was processed, negative pending but not ready, zero nothing pending.

TEST_P(io_multiplexer_test, with_nothing_pending_everything_returns_zero_at_once) {
    auto& m = multiplexer();
    EXPECT_EQ(m.complete_io().value(), 0);
    EXPECT_EQ(m.complete_io(5).value(), 0);
    EXPECT_EQ(m.complete_io_within(1s).value(), 0);
    EXPECT_EQ(m.complete_io_within(now() + 1s).value(), 0);
    EXPECT_EQ(m.timeout_io().value(), 0);
    EXPECT_EQ(m.timeout_io_within(1s).value(), 0);
    EXPECT_EQ(m.timeout_io_within(system_now() + 1s).value(), 0);
    EXPECT_EQ(m.invoke_posted_items().value(), 0);
    EXPECT_EQ(m.invoke_posted_items_within(1s).value(), 0);
    EXPECT_EQ(m.invoke_posted_items_within(now() + 1s).value(), 0);
    EXPECT_EQ(m.run().value(), 0);
    EXPECT_EQ(m.try_run().value(), 0);
    EXPECT_EQ(m.try_run_for(1h).value(), 0);
    EXPECT_EQ(m.try_run_until(now() + 1h).value(), 0);
}

TEST_P(io_multiplexer_test,
       with_io_that_is_not_ready_what_does_not_wait_returns_a_negative_number) {
    auto operation = reading(1h);
    ASSERT_EQ(operation.start(), io_status::pending);
    auto& m = multiplexer();
    EXPECT_LT(m.complete_io().value(), 0);
    EXPECT_LT(m.complete_io_within(1s).value(), 0);
    EXPECT_LT(m.timeout_io().value(), 0);
    EXPECT_LT(m.timeout_io_within(1s).value(), 0);
    EXPECT_LT(m.invoke_posted_items().value(), 0);
    EXPECT_LT(m.try_run().value(), 0);
    EXPECT_TRUE(read.untold());
}

TEST_P(io_multiplexer_test, steady_now_is_the_clock_that_deadlines_count_on) {
    auto const start = io_multiplexer::steady_now();
    auto timer = waiting(start + 5ms);
    (void)timer.start();
    ASSERT_TRUE(drive_until([&] { return waited.done(); }));
    EXPECT_GE(io_multiplexer::steady_now(), start + 5ms);
    EXPECT_LT(io_multiplexer::steady_now(), start + patience);
}

TEST_P(io_multiplexer_test, complete_io_completes_io_but_ends_no_deadline) {
    auto operation = reading(1ms);
    auto timer = waiting(1ms);
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_EQ(timer.start(), io_status::pending);
    pass(3ms);
    EXPECT_LT(multiplexer().complete_io().value(), 0);
    EXPECT_TRUE(read.untold());
    EXPECT_TRUE(waited.untold());
    int ended = 0;
    ASSERT_TRUE(drive_until([&] {
        ended += std::max(multiplexer().timeout_io().value(), 0);
        return read.done() && waited.done();
    }));
    EXPECT_EQ(read.value->error(), std::errc::timed_out);
    EXPECT_GE(ended, 1);
}

TEST_P(io_multiplexer_test, timeout_io_completes_no_io) {
    auto operation = reading(1h);
    ASSERT_EQ(operation.start(), io_status::pending);
    send("x");
    EXPECT_LT(multiplexer().timeout_io().value(), 0);
    EXPECT_TRUE(read.untold());
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(text_of(*read.value), "x");
}

TEST_P(io_multiplexer_test, complete_io_tells_how_many_it_completed) {
    std::vector<stream_socket_handle::pair> pairs;
    std::vector<std::unique_ptr<io_operation_connection<async_read, calling_for<async_read>>>>
        operations;
    int told = 0;
    for (int i = 0; i < 5; ++i) {
        pairs.push_back(tcp_pair());
        operations.push_back(
            std::make_unique<io_operation_connection<async_read, calling_for<async_read>>>(
                async_read(pairs.back().second, buffer(memory)),
                calling_for<async_read>{[](auto&&) {}, [&] { ++told; }}));
        ASSERT_EQ(operations.back()->start(), io_status::pending);
    }
    settle();
    for (auto& p : pairs) {
        ASSERT_TRUE(p.first.write(bytes_of("x"), patience));
    }
    int sum = 0;
    while (told < 5) {
        auto const before = told;
        auto const done = multiplexer().complete_io(2).value();
        EXPECT_LE(done, 2);
        EXPECT_EQ(told - before, std::max(done, 0));
        sum += std::max(done, 0);
    }
    EXPECT_EQ(sum, 5);
    EXPECT_EQ(multiplexer().complete_io().value(), 0);
}

TEST_P(io_multiplexer_test, max_items_bounds_both_directions_of_one_handle) {
    tcp = socket_pair();
    std::string const block(64 << 10, 'x');
    while (tcp.second.try_write(bytes_of(block))) {
    }
    record_of<async_write> written;
    auto operation = reading();
    auto write = connect(async_write(tcp.second, bytes_of(block)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_EQ(write.start(), io_status::pending);
    settle();
    // Both become ready at once.
    send("x");
    std::vector<std::byte> drain(1 << 20);
    while (tcp.first.try_read(buffer(drain))) {
    }
    while (!read.done() || !written.done()) {
        int const before = read.dones + written.dones;
        int const done = multiplexer().complete_io(1).value();
        EXPECT_LE(done, 1);
        EXPECT_EQ(read.dones + written.dones - before, std::max(done, 0));
        (void)tcp.first.try_read(buffer(drain));
    }
}

TEST_P(io_multiplexer_test, run_waits_until_something_was_processed) {
    auto timer = waiting(5ms);
    ASSERT_EQ(timer.start(), io_status::pending);
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_TRUE(waited.done());
    EXPECT_EQ(multiplexer().run().value(), 0);
}

TEST_P(io_multiplexer_test, try_run_for_and_until_wait_no_longer_than_told) {
    auto operation = reading();
    ASSERT_EQ(operation.start(), io_status::pending);
    auto before = now();
    EXPECT_LT(multiplexer().try_run_for(10ms).value(), 0);
    EXPECT_GE(now() - before, 10ms);
    before = now();
    EXPECT_LT(multiplexer().try_run_until(before + 10ms).value(), 0);
    EXPECT_GE(now() - before, 10ms);
    EXPECT_LT(multiplexer().try_run_until(system_now() + 10ms).value(), 0);
    EXPECT_LT(multiplexer().try_run_until(now() - 1h).value(), 0);
    EXPECT_LT(now() - before, 5s);
}

TEST_P(io_multiplexer_test, a_timer_within_the_time_of_try_run_is_processed) {
    auto timer = waiting(200ms);
    ASSERT_EQ(timer.start(), io_status::pending);
    EXPECT_LT(multiplexer().try_run_for(1ms).value(), 0);
    EXPECT_EQ(multiplexer().try_run_for(1h).value(), 1);
    EXPECT_TRUE(waited.done());
}

TEST_P(io_multiplexer_test, run_processes_no_more_than_max_items) {
    int ran = 0;
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(multiplexer().post([&] { ++ran; }));
    }
    EXPECT_EQ(multiplexer().run(2).value(), 2);
    EXPECT_EQ(multiplexer().try_run(2).value(), 2);
    EXPECT_EQ(multiplexer().try_run_for(1s, 2).value(), 1);
    EXPECT_EQ(ran, 5);
}

TEST_P(io_multiplexer_test, within_stops_before_the_rest_when_time_is_over) {
    int ran = 0;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(multiplexer().post([&] {
            ++ran;
            pass(1ms);
        }));
    }
    auto const first = multiplexer().invoke_posted_items_within(5ms).value();
    EXPECT_EQ(first, ran);
    EXPECT_GE(first, 1);
    EXPECT_LT(first, 50);
    EXPECT_LT(multiplexer().invoke_posted_items_within(0s).value(), 0) << "some are left";
    EXPECT_EQ(multiplexer().invoke_posted_items().value(), 100 - first);
}

// Posting.

TEST_P(io_multiplexer_test, posted_work_runs_in_order_and_never_inline) {
    struct item : work {
        item(std::vector<int>& o, int n)
            : work([](work& w) noexcept {
                  auto& self = static_cast<item&>(w);
                  self.order.push_back(self.number);
              }),
              order(o),
              number(n) {}
        std::vector<int>& order;
        int number;
    };
    std::vector<int> order;
    std::vector<std::unique_ptr<item>> items;
    for (int i = 0; i < 10; ++i) {
        items.push_back(std::make_unique<item>(order, i));
        multiplexer().post(*items.back());
    }
    EXPECT_TRUE(order.empty());
    EXPECT_EQ(multiplexer().invoke_posted_items(3).value(), 3);
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
    EXPECT_EQ(multiplexer().invoke_posted_items().value(), 7);
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(io_multiplexer_test, work_posted_from_inside_runs_in_the_next_call) {
    std::vector<int> order;
    ASSERT_TRUE(multiplexer().post([&] {
        order.push_back(1);
        (void)multiplexer().post([&] { order.push_back(3); });
    }));
    ASSERT_TRUE(multiplexer().post([&] { order.push_back(2); }));
    EXPECT_EQ(multiplexer().invoke_posted_items().value(), 2);
    EXPECT_EQ(order, (std::vector{1, 2}));
    EXPECT_EQ(multiplexer().invoke_posted_items().value(), 1);
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_P(io_multiplexer_test, work_that_posts_itself_shares_turns) {
    struct chain : work {
        explicit chain(io_multiplexer& where)
            : work([](work& w) noexcept {
                  auto& self = static_cast<chain&>(w);
                  if (--self.left != 0) {
                      self.m.post(self);
                  }
              }),
              m(where) {}
        io_multiplexer& m;
        int left = 1000;
    };
    auto operation = reading();  // there is i/o to ask for in each turn
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    chain items(multiplexer());
    auto const turns = multiplexer().counters().turns;
    multiplexer().post(items);
    ASSERT_TRUE(drive_until([&] { return items.left == 0; }));
    EXPECT_LE(multiplexer().counters().turns - turns, 100u);
    operation.cancel();
    settle();
}

TEST_P(io_multiplexer_test, work_that_posts_itself_starves_no_io) {
    struct again : work {
        explicit again(io_multiplexer& where)
            : work([](work& w) noexcept {
                  auto& self = static_cast<again&>(w);
                  ++self.rounds;
                  if (!self.over) {
                      self.m.post(self);
                  }
              }),
              m(where) {}
        io_multiplexer& m;
        int rounds = 0;
        bool over = false;
    };
    for (int const max_items : {-1, 1}) {
        again busy(multiplexer());
        auto operation = reading();
        auto timer = waiting(1ms);
        ASSERT_EQ(operation.start(), io_status::pending);
        ASSERT_EQ(timer.start(), io_status::pending);
        send("x");
        multiplexer().post(busy);
        auto const end = now() + patience;
        while ((!read.done() || !waited.done()) && now() < end) {
            ASSERT_GT(multiplexer().run(max_items).value(), 0);
            pass(100us);
        }
        EXPECT_TRUE(read.done()) << max_items;
        EXPECT_TRUE(waited.done()) << max_items;
        EXPECT_GT(busy.rounds, 0);
        busy.over = true;
        settle();
        read = {};
        waited = {};
    }
}

TEST_P(io_multiplexer_test, a_callable_may_own_what_it_needs) {
    auto value = std::make_unique<int>(7);
    int seen = 0;
    ASSERT_TRUE(multiplexer().post([v = std::move(value), &seen] { seen = *v; }));
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_EQ(seen, 7);
}

TEST_P(io_multiplexer_test, callables_that_never_ran_are_freed_with_it) {
    auto const alive = std::make_shared<int>(0);
    struct posts_when_freed {
        std::shared_ptr<int> alive;
        io_multiplexer* m;
        posts_when_freed(std::shared_ptr<int> a, io_multiplexer* where)
            : alive(std::move(a)), m(where) {}
        posts_when_freed(posts_when_freed&& other) noexcept
            : alive(std::move(other.alive)), m(std::exchange(other.m, nullptr)) {}
        ~posts_when_freed() {
            if (m != nullptr) {
                (void)m->post([keep = alive] {});
            }
        }
        void operator()() {}
    };
    ASSERT_TRUE(multiplexer().post(posts_when_freed(alive, &multiplexer())));
    EXPECT_GT(alive.use_count(), 1);
    end_multiplexer();
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_P(io_multiplexer_test, wake_ends_the_next_wait) {
    auto operation = reading();
    ASSERT_EQ(operation.start(), io_status::pending);
    multiplexer().wake();
    EXPECT_LT(multiplexer().run().value(), 0);
    EXPECT_LT(multiplexer().try_run().value(), 0);
}

TEST_P(io_multiplexer_test, turns_and_completions_are_counted) {
    auto const before = multiplexer().counters();
    auto operation = reading();
    (void)operation.start();
    send("x");
    ASSERT_TRUE(drive_until([&] { return read.done(); }));
    EXPECT_EQ(multiplexer().counters().completions, before.completions + 1);
    EXPECT_GT(multiplexer().counters().turns, before.turns);
}

// Load.

TEST_P(io_multiplexer_test, a_million_completions_at_once_need_no_stack_and_starve_nobody) {
    constexpr int count = 1'000'000;
    int rounds = 0;
    int at_timer = 0;
    std::optional<io_operation_connection<async_read, calling_for<async_read>>> empty;
    empty.emplace(async_read(tcp.first, buffer()),
                  calling_for<async_read>{[](auto&&) {},
                                          [&] {
                                              if (++rounds < count) {
                                                  empty->reset();
                                                  (void)empty->start();
                                              }
                                          }});
    // The time of a simulated system stands still while there is something to do.
    deadline const when = simulated() ? deadline(0s) : deadline(1ms);
    auto timer = connect(async_wait(multiplexer(), when),
                         calling_for<async_wait>{[](auto&&) {}, [&] { at_timer = rounds; }});
    (void)timer.start();
    ASSERT_EQ(empty->start(), io_status::completed);
    auto const end = now() + 3 * patience;
    while (rounds < count && now() < end) {
        ASSERT_GT(multiplexer().run().value(), 0);
    }
    EXPECT_EQ(rounds, count);
    EXPECT_LT(at_timer, count);
}

TEST_P(io_multiplexer_test, a_busy_socket_leaves_a_thousand_quiet_ones_their_turn) {
    constexpr std::size_t count = 1000;
    struct quiet {
        stream_socket_handle::pair ends;
        std::array<std::byte, 4> memory;
        record_of<async_read> told;
        std::optional<io_operation_connection<async_read, recorder<io_result<buffers>>>> operation;
    };
    std::vector<std::unique_ptr<quiet>> quiet_ones;
    for (std::size_t i = 0; i < count; ++i) {
        auto q = std::make_unique<quiet>();
        q->ends = stream_socket_handle::socket_pair().value();
        q->ends.second.set_multiplexer(multiplexer());
        q->operation.emplace(async_read(q->ends.second, buffer(q->memory)), recorder(q->told));
        ASSERT_EQ(q->operation->start(), io_status::pending);
        quiet_ones.push_back(std::move(q));
    }
    // The busy one always has bytes to read.
    std::string const block(64 << 10, 'x');
    std::uint64_t busy_reads = 0;
    bool over = false;
    std::optional<io_operation_connection<async_read, calling_for<async_read>>> busy;
    busy.emplace(async_read(tcp.second, buffer(memory)),
                 calling_for<async_read>{[](auto&&) {},
                                         [&] {
                                             ++busy_reads;
                                             (void)tcp.first.try_write(bytes_of(block));
                                             if (!over) {
                                                 busy->reset();
                                                 (void)busy->start();
                                             }
                                         }});
    ASSERT_TRUE(tcp.first.try_write(bytes_of(block)));
    (void)busy->start();
    for (int i = 0; i < 10; ++i) {
        ASSERT_GT(multiplexer().run().value(), 0);
    }
    auto const before = busy_reads;
    for (auto const& q : quiet_ones) {
        ASSERT_TRUE(q->ends.first.write(bytes_of("q"), patience));
    }
    ASSERT_TRUE(drive_until([&] {
        return std::ranges::all_of(quiet_ones, [](auto const& q) { return q->told.done(); });
    }));
    EXPECT_LT(busy_reads - before, 5000u) << "the quiet ones waited too long";
    over = true;
    busy->cancel();
    settle();
}

TEST_P(io_multiplexer_test, the_cost_of_a_turn_does_not_grow_with_what_is_pending) {
    if (simulated()) {
        GTEST_SKIP() << "the simulated time of a turn is zero";
    }
    // Counted in what complete_io tells, not in time: with many pending it finds the one that is ready
    // in one turn.
    std::vector<stream_socket_handle::pair> pairs;
    std::vector<std::unique_ptr<io_operation_connection<async_read, calling_for<async_read>>>>
        operations;
    for (int i = 0; i < 500; ++i) {
        pairs.push_back(stream_socket_handle::socket_pair().value());
        pairs.back().second.set_multiplexer(multiplexer());
        operations.push_back(
            std::make_unique<io_operation_connection<async_read, calling_for<async_read>>>(
                async_read(pairs.back().second, buffer(memory)), calling_for<async_read>{}));
        ASSERT_EQ(operations.back()->start(), io_status::pending);
    }
    settle();
    ASSERT_TRUE(pairs[321].first.write(bytes_of("x"), patience));
    auto const turns = multiplexer().counters().turns;
    ASSERT_TRUE(drive_until([&] { return operations[321]->completed(); }));
    EXPECT_LE(multiplexer().counters().turns - turns, 3u);
}

TEST_P(io_multiplexer_test, many_handles_come_and_go) {
    for (int round = 0; round < 3; ++round) {
        std::vector<stream_socket_handle::pair> pairs;
        for (int i = 0; i < 600; ++i) {
            pairs.push_back(stream_socket_handle::socket_pair().value());
            auto& p = pairs.back();
            p.second.set_multiplexer(multiplexer());
            ASSERT_TRUE(p.first.write(bytes_of("x"), patience));
            read = {};
            auto operation = connect(async_read(p.second, buffer(memory)), recorder(read));
            (void)operation.start();
            ASSERT_TRUE(drive_until([&] { return read.done(); }));
        }
    }
}

// From other threads; the simulated loop is one thread.

class io_multiplexer_threads_test : public io_multiplexer_test {};

INSTANTIATE_TEST_SUITE_P(backends, io_multiplexer_threads_test, real_backends(), name_of_backend);

TEST_P(io_multiplexer_threads_test, posts_from_other_threads_all_run_each_in_its_order) {
    constexpr int producers = 3;
    constexpr int each = 2000;
    std::array<int, producers> next{};
    int ran = 0;
    multiplexer().work_started();
    std::atomic<int> left = producers;
    std::vector<std::thread> threads;
    for (std::size_t p = 0; p < producers; ++p) {
        threads.emplace_back([&, p] {
            for (int i = 0; i < each; ++i) {
                EXPECT_TRUE(multiplexer().post([&, p, i] {
                    EXPECT_EQ(next[p], i);
                    next[p] = i + 1;
                    ++ran;
                }));
            }
            if (left.fetch_sub(1) == 1) {
                multiplexer().work_finished();
            }
        });
    }
    for (int done = 1; done != 0;) {
        done = multiplexer().run().value();
    }
    EXPECT_EQ(ran, producers * each);
    for (auto& t : threads) {
        t.join();
    }
}

TEST_P(io_multiplexer_threads_test, a_post_ends_the_wait_of_run) {
    multiplexer().work_started();
    std::atomic<bool> about_to_run = false;
    bool ran = false;
    std::thread other([&] {
        while (!about_to_run) {
            std::this_thread::yield();
        }
        EXPECT_TRUE(multiplexer().post([&] { ran = true; }));
    });
    about_to_run = true;
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_TRUE(ran);
    other.join();
    multiplexer().work_finished();
    while (multiplexer().run().value() != 0) {
    }
}

TEST_P(io_multiplexer_threads_test, wake_ends_the_wait_of_run) {
    auto operation = reading();
    ASSERT_EQ(operation.start(), io_status::pending);
    std::thread other([&] { multiplexer().wake(); });
    EXPECT_LT(multiplexer().run().value(), 0);
    other.join();
}

TEST_P(io_multiplexer_threads_test, run_waits_for_outside_work_and_ends_with_it) {
    for (int i = 0; i < 200; ++i) {
        bool ran = false;
        multiplexer().work_started();
        EXPECT_LT(multiplexer().try_run().value(), 0);
        std::thread other([&] {
            EXPECT_TRUE(multiplexer().post([&] { ran = true; }));
            multiplexer().work_finished();
        });
        // Ends only once nothing is pending: the post can't be missed.
        for (int done = 1; done != 0;) {
            done = multiplexer().run().value();
        }
        EXPECT_TRUE(ran);
        other.join();
    }
}

TEST_P(io_multiplexer_threads_test, it_may_be_driven_by_one_thread_after_another) {
    // This thread drives first, then posts while another one drives.
    (void)multiplexer().try_run();
    std::atomic<bool> over = false;
    multiplexer().work_started();
    int ran = 0;
    std::thread driver([&] {
        while (!over) {
            EXPECT_TRUE(multiplexer().try_run_for(patience));
        }
    });
    for (int i = 0; i < 2000; ++i) {
        EXPECT_TRUE(multiplexer().post([&] { ++ran; }));
    }
    EXPECT_TRUE(multiplexer().post([&] { over = true; }));
    driver.join();
    EXPECT_EQ(ran, 2000);
    multiplexer().work_finished();
}

TEST_P(io_multiplexer_threads_test, each_thread_has_its_own) {
    auto& mine = io_multiplexer::this_thread();
    EXPECT_EQ(&mine, &io_multiplexer::this_thread());
    std::thread([&] {
        EXPECT_NE(&mine, &io_multiplexer::this_thread());
        // Ends with something pending and something posted.
        static thread_local std::array<std::byte, 8> bytes;
        auto ends = stream_socket_handle::socket_pair().value();
        auto operation = connect(async_read(ends.first, buffer(bytes)), calling_for<async_read>{});
        EXPECT_EQ(operation.start(), io_status::pending);
        EXPECT_EQ(ends.first.multiplexer(), &io_multiplexer::this_thread());
        EXPECT_TRUE(io_multiplexer::this_thread().post([] { ADD_FAILURE(); }));
    }).join();
    std::thread([] {
        // An operation and its handle that live longer than the loop of their thread.
        static thread_local stream_socket_handle::pair ends =
            stream_socket_handle::socket_pair().value();
        static thread_local std::array<std::byte, 8> bytes;
        static thread_local auto operation =
            connect(async_read(ends.first, buffer(bytes)), calling_for<async_read>{});
        EXPECT_EQ(operation.start(), io_status::pending);
    }).join();
}

}  // namespace
}  // namespace plumb::test
