// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/atomic_sender.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// A multiplexer for four threads.
class several_threads : public on_every_backend {
protected:
    static constexpr int threads = 4;
    std::unique_ptr<io_multiplexer> shared;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            shared = io_multiplexer::make(GetParam(), threads).value();
        }
    }

    /// Runs it on all threads until each of them was told that nothing is pending.
    void run_to_the_end() {
        std::vector<std::thread> running;
        for (int t = 0; t < threads; ++t) {
            running.emplace_back([this] {
                auto const end = now() + patience;
                for (;;) {
                    auto const done = shared->try_run_until(end);
                    ASSERT_TRUE(done) << done.error().message();
                    ASSERT_LT(now(), end);
                    if (*done == 0) {
                        return;
                    }
                }
            });
        }
        for (auto& thread : running) {
            thread.join();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(backends, several_threads, real_backends(), name_of_backend);

TEST_P(several_threads, without_anything_pending_all_return) { run_to_the_end(); }

TEST_P(several_threads, run_posted_work_at_the_same_time) {
    std::barrier meeting(threads);  // which each item leaves only together with the others
    std::atomic<int> done = 0;
    for (int t = 0; t < threads; ++t) {
        ASSERT_TRUE(shared->post([&] {
            meeting.arrive_and_wait();
            ++done;
        }));
    }
    run_to_the_end();
    EXPECT_EQ(done, threads);
}

TEST_P(several_threads, run_what_posted_work_posts) {
    std::atomic<int> done = 0;
    struct chain {
        io_multiplexer& m;
        std::atomic<int>& done;
        int left;
        void operator()() const {
            ++done;
            if (left != 0) {
                ASSERT_TRUE(m.post(chain{m, done, left - 1}));
            }
        }
    };
    for (int t = 0; t < 2 * threads; ++t) {
        ASSERT_TRUE(shared->post(chain{*shared, done, 99}));
    }
    run_to_the_end();
    EXPECT_EQ(done, 2 * threads * 100);
}

TEST_P(several_threads, tell_receivers_one_at_a_time_and_each_once) {
    struct shared_count {
        std::atomic<int> inside = 0;
        std::atomic<int> told = 0;
        std::atomic<bool> overlapped = false;
    } count;
    struct receiver {
        shared_count* count;
        void set_value(result<void>&&) noexcept {
            if (count->inside.fetch_add(1) != 0) {
                count->overlapped = true;
            }
        }
        void set_done() noexcept {
            count->inside.fetch_sub(1);
            ++count->told;
        }
    };
    constexpr int each = 200;
    using operation = decltype(connect(atomic_async_wait(*shared, 1us), receiver{}));
    std::vector<std::unique_ptr<operation>> all;
    for (int i = 0; i < threads * each; ++i) {
        all.push_back(std::make_unique<operation>(
            atomic_async_wait(*shared, std::chrono::microseconds(i % 50)), receiver{&count}));
    }
    for (int t = 0; t < threads; ++t) {
        // Started by work that runs beside the leader.
        ASSERT_TRUE(shared->post([&, t] {
            for (int i = 0; i < each; ++i) {
                (void)all[static_cast<std::size_t>(t * each + i)]->start();
            }
        }));
    }
    run_to_the_end();
    EXPECT_EQ(count.told, threads * each);
    EXPECT_FALSE(count.overlapped);
}

TEST_P(several_threads, read_and_write_pipes_through_it) {
    constexpr std::size_t pipes = 8;
    constexpr int rounds = 100;
    struct channel {
        pipe_handle::ends ends = pipe_handle::anonymous_pipe().value();
        std::array<std::byte, 16> memory{};
        int read = 0;
        std::function<void()> read_again;
    };
    std::vector<channel> channels(pipes);
    struct receiver {
        channel* c;
        void set_value(io_result<buffers>&& r) noexcept {
            EXPECT_EQ(text_of(r), "ping");
            ++c->read;
        }
        void set_done() noexcept {
            if (c->read < rounds) {
                c->read_again();
            }
        }
    };
    using operation = io_operation_connection<atomic_async_read, receiver>;
    std::vector<std::unique_ptr<operation>> operations(pipes);
    for (std::size_t i = 0; i < pipes; ++i) {
        channels[i].ends.reader.set_multiplexer(*shared);
        operations[i] = std::make_unique<operation>(
            atomic_async_read(channels[i].ends.reader, buffer(channels[i].memory).first(4)),
            receiver{&channels[i]});
        channels[i].read_again = [&self = *operations[i]] {
            self.reset();
            (void)self.start();
        };
        (void)operations[i]->start();
    }
    std::thread writer([&] {
        std::string const text = "ping";
        for (int round = 0; round < rounds; ++round) {
            for (channel& c : channels) {
                EXPECT_EQ(c.ends.writer.write(bytes_of(text), patience).bytes_transferred(), 4u);
            }
        }
    });
    run_to_the_end();
    writer.join();
    for (channel const& c : channels) {
        EXPECT_EQ(c.read, rounds);
    }
}

TEST_P(several_threads, one_that_completes_while_another_leads_is_told_that_something_is_pending) {
    shared->work_started();
    std::thread leader([&] { (void)shared->try_run_for(patience); });
    while (shared->complete_io().value() != -1) {  // 0: nobody leads yet, and nothing is pending
        std::this_thread::yield();
    }
    EXPECT_EQ(shared->timeout_io().value(), -1);
    EXPECT_EQ(shared->try_run_for(1ms).value(), -1);
    shared->work_finished();
    leader.join();
    EXPECT_EQ(shared->complete_io().value(), 0);
}

TEST_P(several_threads, posted_work_reaches_a_leader_that_sleeps_and_those_that_wait) {
    shared->work_started();
    std::atomic<int> done = 0;
    std::thread poster([&] {
        for (int i = 0; i < 1000; ++i) {
            ASSERT_TRUE(shared->post([&] { ++done; }));
            if (i % 50 == 0) {
                std::this_thread::sleep_for(100us);
            }
        }
        shared->work_finished();
    });
    run_to_the_end();
    poster.join();
    EXPECT_EQ(done, 1000);
}

TEST_P(several_threads, a_signals_work_reaches_it) {
    struct counted : signal_work {
        std::atomic<int> runs = 0;
        counted() noexcept
            : signal_work([](signal_work& self) noexcept { ++static_cast<counted&>(self).runs; }) {}
    } item;
    shared->work_started();
    std::thread signalling([&] {
        shared->post(item);
        while (item.runs == 0) {
            std::this_thread::yield();
        }
        shared->work_finished();
    });
    run_to_the_end();
    signalling.join();
    EXPECT_EQ(item.runs, 1);
}

TEST_P(several_threads, what_is_queued_at_the_end_is_dropped) {
    auto const kept = std::make_shared<int>(1);
    ASSERT_TRUE(shared->post([kept] {}));
    shared.reset();
    EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace plumb::test
