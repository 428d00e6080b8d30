// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_context.hpp>

#include <plumb/exec/manual_executor.hpp>
#include <plumb/exec/strand.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/event.hpp>
#include <plumb/task/run_on.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_any.hpp>

#include "support/backend.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <stdexcept>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// A context for several threads, which in a simulated world one thread runs.
class several_threads : public on_every_backend {
protected:
    std::unique_ptr<io_context> context;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            make_context();
        }
    }
    void TearDown() override { context.reset(); }

    void make_context() {
        context =
            std::make_unique<io_context>(std::move(io_multiplexer::make(GetParam(), 4).value()));
    }
    [[nodiscard]] io_context::executor_type const& executor() { return context->get_executor(); }

    /// Runs it on so many threads until all have returned.
    void run_on_threads(int threads) {
        std::vector<std::jthread> others;
        for (int t = 1; t < threads && !simulated(); ++t) {
            others.emplace_back([this] { EXPECT_TRUE(context->run()); });
        }
        EXPECT_TRUE(context->run());
    }
};

INSTANTIATE_TEST_SUITE_P(backends, several_threads, every_backend(), name_of_backend);

/// Counts who is inside, which in a strand is one.
class alone {
public:
    class inside {
    public:
        explicit inside(alone& a) noexcept : in_(a) { EXPECT_EQ(in_.count_.fetch_add(1), 0); }
        inside(inside const&) = delete;
        inside& operator=(inside const&) = delete;
        ~inside() { in_.count_.fetch_sub(1); }

    private:
        alone& in_;
    };

private:
    std::atomic<int> count_ = 0;
};

task<> echo(stream_socket_handle peer) {
    std::array<std::byte, 64> room;
    for (;;) {
        auto const got = co_await peer.co_read(buffer(room));
        if (!got || got.bytes_transferred() == 0) {
            co_return;
        }
        auto const sent =
            co_await peer.co_write(const_buffer(room.data(), got.bytes_transferred()));
        EXPECT_TRUE(sent);
    }
}

task<> serve(io_context& context, listen_socket_handle& listener, int connections) {
    for (int c = 0; c < connections; ++c) {
        auto peer = co_await listener.co_accept();
        if (!peer) {
            ADD_FAILURE() << peer.error().message();
            co_return;
        }
        async_run(strand(context.get_executor()), echo(std::move(*peer)));
    }
}

task<> ask(endpoint where, int rounds, std::atomic<int>& answers) {
    auto socket = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    auto const connected = co_await socket.co_connect(where);
    EXPECT_TRUE(connected);
    alone here;
    for (int i = 0; i < rounds; ++i) {
        std::string const text = "message " + std::to_string(i);
        auto const sent = co_await socket.co_write(bytes_of(text));
        EXPECT_EQ(sent.bytes_transferred(), text.size());
        std::array<char, 64> room;
        std::size_t got = 0;
        while (got < text.size()) {
            auto const part = co_await socket.co_read(buffer(room).skip(got));
            alone::inside const one(here);
            if (!part || part.bytes_transferred() == 0) {
                ADD_FAILURE() << "cut off";
                co_return;
            }
            got += part.bytes_transferred();
        }
        EXPECT_EQ(std::string(room.data(), got), text);
        ++answers;
    }
}

TEST_P(several_threads, echo_many_connections_each_in_a_strand) {
    constexpr int connections = 24;
    constexpr int rounds = 20;
    for (int const threads : {2, 4}) {
        auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
        std::atomic<int> answers = 0;
        async_run(strand(executor()), serve(*context, listener, connections));
        for (int c = 0; c < connections; ++c) {
            async_run(strand(executor()), ask(listener.local().value(), rounds, answers));
        }
        run_on_threads(threads);
        EXPECT_EQ(answers, connections * rounds);
    }
}

TEST_P(several_threads, coroutines_without_a_strand_go_on_on_any_thread) {
    constexpr int tasks = 16;
    constexpr int rounds = 30;
    std::atomic<int> done = 0;
    auto const pass = [&]() -> task<> {
        auto ends = pipe_handle::anonymous_pipe().value();
        std::array<std::byte, 8> room;
        for (int i = 0; i < rounds; ++i) {
            EXPECT_TRUE(co_await ends.writer.co_write(bytes_of("ping")));
            auto const got = co_await ends.reader.co_read(buffer(room));
            EXPECT_EQ(text_of(got), "ping");
            EXPECT_TRUE(executor().running_in_this_thread());
            EXPECT_TRUE(co_await co_wait(10us));
            EXPECT_EQ(&io_multiplexer::this_thread(), &context->multiplexer());
        }
        ++done;
    };
    for (int t = 0; t < tasks; ++t) {
        async_run(executor(), pass());
    }
    run_on_threads(3);
    EXPECT_EQ(done, tasks);
}

TEST_P(several_threads, every_run_returns_when_nothing_can_come_any_more) {
    for (int round = 0; round < 20; ++round) {
        event go;
        bool went = false;
        auto const waiting = [&]() -> task<> {
            EXPECT_TRUE(co_await go.wait());
            EXPECT_TRUE(co_await co_wait(100us));
            went = true;
        };
        async_run(executor(), waiting());
        std::jthread setter;
        if (simulated()) {
            ASSERT_TRUE(context->multiplexer().post([&] { go.set(); }));
        } else {
            setter = std::jthread([&, guard = work_guard(executor())]() mutable {
                std::this_thread::yield();
                go.set();
                guard.reset();
            });
        }
        run_on_threads(4);
        ASSERT_TRUE(went);
    }
}

TEST_P(several_threads, stop_ends_every_run_and_the_next_goes_on) {
    if (simulated()) {
        GTEST_SKIP() << "one thread runs a simulated world";
    }
    bool waited = false;
    auto const waiting = [&]() -> task<> {
        EXPECT_TRUE(co_await co_wait(50ms));
        waited = true;
    };
    async_run(executor(), waiting());
    std::barrier inside(4);
    for (int t = 0; t < 3; ++t) {
        ASSERT_TRUE(context->multiplexer().post([&] { inside.arrive_and_wait(); }));
    }
    std::jthread const stopping([&] {
        inside.arrive_and_wait();
        context->stop();
    });
    run_on_threads(3);
    EXPECT_FALSE(waited);
    run_on_threads(3);
    EXPECT_TRUE(waited);
}

TEST_P(several_threads, an_exception_of_a_task_reaches_who_launched_it) {
    std::atomic<int> failed = 0;
    auto const failing = []() -> task<> {
        EXPECT_TRUE(co_await co_wait(10us));
        throw std::runtime_error("expected");
    };
    for (int t = 0; t < 20; ++t) {
        async_run(executor(), failing(), {}, [&](task_result<void>& r) {
            EXPECT_THROW(r.take(), std::runtime_error);
            ++failed;
        });
    }
    run_on_threads(3);
    EXPECT_EQ(failed, 20);
}

TEST_P(several_threads, a_coroutine_comes_back_from_a_pool) {
    if (simulated()) {
        GTEST_SKIP() << "a simulated world has no threads";
    }
    thread_pool pool(2);
    std::atomic<int> done = 0;
    auto const there = [&]() -> task<int> {
        EXPECT_TRUE(pool.get_executor().running_in_this_thread());
        co_return 1;
    };
    auto const back_and_forth = [&](auto home) -> task<> {
        for (int i = 0; i < 50; ++i) {
            done += co_await run_on(pool.get_executor(), there());
            EXPECT_TRUE(home.running_in_this_thread());
        }
    };
    async_run(executor(), back_and_forth(executor()));
    strand const s(executor());
    async_run(s, back_and_forth(s));
    run_on_threads(2);
    EXPECT_EQ(done, 100);
}

TEST_P(several_threads, a_stop_request_reaches_what_is_in_flight_on_any_of_them) {
    constexpr int tasks = 12;
    for (bool const in_strand : {false, true}) {
        for (int round = 0; round < 10; ++round) {
            std::vector<pipe_handle::ends> pipes;
            for (int t = 0; t < tasks; ++t) {
                pipes.push_back(pipe_handle::anonymous_pipe().value());
            }
            std::atomic<int> ended = 0;
            stop_source all(executor());
            auto const reading = [&](pipe_handle& from) -> task<> {
                std::array<std::byte, 8> room;
                auto const got = co_await from.co_read(buffer(room));
                EXPECT_TRUE(got ? text_of(got) == "late"
                                : got.error() == std::errc::operation_canceled);
                ++ended;
            };
            auto const scope = [&]() -> task<> {
                co_await task_scope::run([&](task_scope& s) -> task<> {
                    for (auto& ends : pipes) {
                        s.spawn(reading(ends.reader));
                    }
                    // Some have their bytes while the stop is on its way.
                    for (std::size_t t = 0; t < pipes.size(); t += 2) {
                        EXPECT_TRUE(pipes[t].writer.write(bytes_of("late")));
                    }
                    s.request_stop();
                    co_return;
                });
            };
            if (in_strand) {
                async_run(strand(executor()), scope());
            } else {
                async_run(executor(), scope());
            }
            run_on_threads(3);
            ASSERT_EQ(ended, tasks);
        }
    }
}

TEST_P(several_threads, the_first_of_several_cancels_the_rest) {
    std::atomic<int> done = 0;
    auto const wait_for = [](std::chrono::nanoseconds d) -> task<bool> {
        auto const waited = co_await co_wait(d);
        co_return waited.has_value();
    };
    auto const race = [&]() -> task<> {
        for (int i = 0; i < 20; ++i) {
            auto ends = pipe_handle::anonymous_pipe().value();
            auto const read = [&]() -> task<bool> {
                std::array<std::byte, 8> room;
                auto const got = co_await ends.reader.co_read(buffer(room));
                co_return got.has_value();
            };
            auto ended = co_await when_any(wait_for(1h), wait_for(10us), read());
            EXPECT_EQ(ended.index, 1u);
            EXPECT_FALSE(std::get<0>(ended.tasks).take());
            EXPECT_TRUE(std::get<1>(ended.tasks).take());
        }
        ++done;
    };
    for (int t = 0; t < 4; ++t) {
        async_run(executor(), race());
        async_run(strand(executor()), race());
    }
    run_on_threads(3);
    EXPECT_EQ(done, 8);
}

TEST_P(several_threads, a_handle_closed_on_one_ends_what_is_in_flight_on_it) {
    std::atomic<int> canceled = 0;
    std::vector<pipe_handle::ends> pipes;
    for (int p = 0; p < 30; ++p) {
        pipes.push_back(pipe_handle::anonymous_pipe().value());
    }
    auto const closing = [&](pipe_handle& reader) -> task<> {
        EXPECT_TRUE(reader.close());
        co_return;
    };
    auto const reading = [&](pipe_handle::ends& of, auto here) -> task<> {
        std::array<std::byte, 8> room;
        EXPECT_TRUE(co_await of.writer.co_write(bytes_of("x")));
        EXPECT_TRUE(co_await of.reader.co_read(buffer(room)));
        async_run(here, closing(of.reader));  // which finds the next read begun, or on its way
        auto const got = co_await of.reader.co_read(buffer(room));
        EXPECT_EQ(got.error(), std::errc::operation_canceled);
        ++canceled;
    };
    for (auto& ends : pipes) {
        strand const here(executor());
        async_run(here, reading(ends, here));
    }
    run_on_threads(3);
    EXPECT_EQ(canceled, 30);
}

TEST_P(several_threads, a_handle_can_be_released_on_any_of_them) {
    std::atomic<int> released = 0;
    auto const give_away = [&]() -> task<> {
        auto ends = pipe_handle::anonymous_pipe().value();
        std::array<std::byte, 8> room;
        EXPECT_TRUE(co_await ends.writer.co_write(bytes_of("x")));
        EXPECT_TRUE(co_await ends.reader.co_read(buffer(room)));
        auto const native = ends.reader.release();
        EXPECT_TRUE(native);
        auto again = pipe_handle::adopt(*native);
        EXPECT_TRUE(again);
        EXPECT_TRUE(co_await ends.writer.co_write(bytes_of("y")));
        EXPECT_EQ(text_of(co_await again->co_read(buffer(room))), "y");
        ++released;
    };
    for (int t = 0; t < 20; ++t) {
        async_run(executor(), give_away());
    }
    run_on_threads(3);
    EXPECT_EQ(released, 20);
}

TEST_P(several_threads, destroyed_it_destroys_what_waits) {
    int destroyed = 0;
    struct at_the_end {
        int& count;
        ~at_the_end() { ++count; }
    };
    auto ends = pipe_handle::anonymous_pipe().value();
    auto const reading = [&]() -> task<> {
        at_the_end const counts{destroyed};
        std::array<std::byte, 8> room;
        (void)co_await ends.reader.co_read(buffer(room));
        ADD_FAILURE();
    };
    auto const waiting = [&]() -> task<> {
        at_the_end const counts{destroyed};
        (void)co_await co_wait(1h);
        ADD_FAILURE();
    };
    async_run(strand(executor()), reading());
    async_run(executor(), waiting());
    ASSERT_TRUE(context->run_some(-1, 0ms));
    ASSERT_TRUE(context->run_some(-1, 0ms));
    async_run(executor(), waiting());
    // Of this one the operation is on its way and hasn't begun.
    ASSERT_EQ(context->run_some(1, 0ms).value(), 1);
    context.reset();
    EXPECT_EQ(destroyed, 3);
}

TEST_P(several_threads, gone_first_it_lets_go_of_the_i_o_of_a_coroutine_from_elsewhere) {
    auto ends = pipe_handle::anonymous_pipe().value();
    bool destroyed = false;
    struct at_the_end {
        bool& noted;
        ~at_the_end() { noted = true; }
    };
    auto const reading = [&]() -> task<> {
        at_the_end const notes{destroyed};
        std::array<std::byte, 8> room;
        (void)co_await ends.reader.co_read(buffer(room));
        ADD_FAILURE();
    };
    auto const begin = [&]() -> task<> { co_await run_on(executor(), reading()); };
    {
        manual_executor elsewhere;
        async_run(elsewhere.get_executor(), begin());
        elsewhere.run();
        ASSERT_TRUE(context->run_some(-1, 0ms));  // the coroutine
        ASSERT_TRUE(context->run_some(-1, 0ms));  // its read
        context.reset();
        EXPECT_FALSE(destroyed);
    }
    EXPECT_TRUE(destroyed);
}

// Whoever brings the last work home may still be inside of the context when `run` returns.
TEST_P(several_threads, one_for_one_thread_may_end_as_soon_as_its_run_returns) {
    if (simulated()) {
        GTEST_SKIP() << "a pool is of real threads";
    }
    thread_pool pool(2);
    auto const away = []() -> task<> { co_return; };
    for (int round = 0; round < 300; ++round) {
        io_context one(std::move(io_multiplexer::make(GetParam(), 1).value()));
        auto const there_and_back = [&]() -> task<> {
            co_await run_on(pool.get_executor(), away());
        };
        async_run(one.get_executor(), there_and_back());
        ASSERT_TRUE(one.run());
    }
}

TEST_P(several_threads, dispatch_is_inline_only_inside) {
    EXPECT_TRUE(executor_ref(executor()).concurrent());
    EXPECT_FALSE(executor_ref(strand(executor())).concurrent());
    EXPECT_FALSE(executor().running_in_this_thread());
    auto const h = std::noop_coroutine();
    int ran = 0;
    ASSERT_TRUE(context->multiplexer().post([&] {
        EXPECT_TRUE(executor().running_in_this_thread());
        EXPECT_EQ(executor().dispatch(h), h);
        strand const s(executor());
        EXPECT_FALSE(s.running_in_this_thread());
        ++ran;
    }));
    run_on_threads(2);
    EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace plumb::test
