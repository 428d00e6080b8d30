// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/signal_work.hpp>

#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include <pthread.h>

namespace plumb::test {
namespace {

struct counting : signal_work {
    counting() : signal_work([](signal_work& w) noexcept { ++static_cast<counting&>(w).runs; }) {}
    int runs = 0;
};

// Signals reach the real loops only.
class signal_work_test : public on_every_backend {
protected:
    static inline io_multiplexer* where;
    static inline counting* what;
    static inline std::atomic<int> handled;
    counting item;

    void SetUp() override {
        on_every_backend::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        where = &multiplexer();
        what = &item;
        handled = 0;
        struct sigaction action{};
        action.sa_handler = [](int) {
            int const before = errno;
            errno = EDOM;
            where->post(*what);
            handled += errno == EDOM;
            errno = before;
        };
        ASSERT_EQ(::sigaction(SIGUSR1, &action, &before_), 0);
    }
    void TearDown() override {
        if (where != nullptr) {
            ::sigaction(SIGUSR1, &before_, nullptr);
            where = nullptr;
        }
    }

private:
    struct sigaction before_{};
};

INSTANTIATE_TEST_SUITE_P(backends, signal_work_test, real_backends(), name_of_backend);

TEST_P(signal_work_test, a_post_from_a_handler_runs_later_and_keeps_errno) {
    std::raise(SIGUSR1);
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(item.runs, 0);
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_EQ(item.runs, 1);
}

TEST_P(signal_work_test, posting_again_before_it_ran_does_nothing) {
    std::raise(SIGUSR1);
    std::raise(SIGUSR1);
    multiplexer().post(item);
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_EQ(item.runs, 1);
    std::raise(SIGUSR1);
    EXPECT_EQ(multiplexer().run().value(), 1);
    EXPECT_EQ(item.runs, 2);
}

TEST_P(signal_work_test, a_signal_to_a_loop_that_sleeps_ends_its_wait) {
    for (int i = 0; i < 20; ++i) {
        multiplexer().work_started();
        std::atomic<bool> over = false;
        auto const runner = ::pthread_self();
        std::thread other([&] {
            // Again and again, since the first may come before the loop sleeps.
            while (!over) {
                ::pthread_kill(runner, SIGUSR1);
                std::this_thread::yield();
            }
        });
        auto const before = item.runs;
        while (item.runs == before) {
            ASSERT_TRUE(multiplexer().run());
        }
        over = true;
        other.join();
        multiplexer().work_finished();
        settle();
    }
}

TEST_P(signal_work_test, a_signal_between_posts_breaks_no_queue) {
    std::atomic<bool> over = false;
    auto const runner = ::pthread_self();
    std::thread other([&] {
        while (!over) {
            ::pthread_kill(runner, SIGUSR1);
            std::this_thread::yield();
        }
    });
    int ran = 0;
    int posted = 0;
    for (auto const end = now() + patience; posted < 20'000 || (item.runs == 0 && now() < end);) {
        EXPECT_TRUE(multiplexer().post([&] { ++ran; }));
        if (++posted % 16 == 0) {
            (void)multiplexer().try_run();
        }
    }
    over = true;
    other.join();
    settle();
    EXPECT_EQ(ran, posted);
    EXPECT_GT(item.runs, 0);
}

TEST_P(signal_work_test, interrupted_waits_go_on) {
    using namespace std::chrono_literals;
    std::atomic<bool> over = false;
    auto const runner = ::pthread_self();
    struct sigaction nothing{};
    nothing.sa_handler = [](int) {};
    ASSERT_EQ(::sigaction(SIGUSR1, &nothing, nullptr), 0);
    std::thread other([&] {
        while (!over) {
            ::pthread_kill(runner, SIGUSR1);
            std::this_thread::yield();
        }
    });
    record_of<async_wait> waited;
    auto const before = now();
    auto operation = connect(async_wait(multiplexer(), 10ms), recorder(waited));
    (void)operation.start();
    EXPECT_TRUE(drive_until([&] { return waited.done(); }));
    EXPECT_GE(now() - before, 10ms);

    // Blocking i/o too waits out its deadline.
    auto ends = pipe();
    std::byte byte;
    auto const blocking = now();
    EXPECT_EQ(ends.reader.read(buffer(&byte, 1), 10ms).error(), std::errc::timed_out);
    EXPECT_GE(now() - blocking, 10ms);
    over = true;
    other.join();
}

}  // namespace
}  // namespace plumb::test
