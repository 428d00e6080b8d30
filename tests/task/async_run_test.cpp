// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/async_run.hpp>

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>

#include "support/context.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class async_run_test : public ::testing::Test {
protected:
    manual_loop loop;
};

TEST_F(async_run_test, posts_the_start) {
    bool ran = false;
    auto const run = [&]() -> task<> {
        ran = true;
        co_return;
    };
    async_run(loop.get_executor(), run());
    EXPECT_FALSE(ran);
    EXPECT_EQ(loop.count(), 1u);
    loop.run();
    EXPECT_TRUE(ran);
    EXPECT_TRUE(loop.roots().empty());
}

TEST_F(async_run_test, posts_the_start_from_inside_too) {
    std::string order;
    auto const inner = [&]() -> task<> {
        order += 'i';
        co_return;
    };
    auto const outer = [&]() -> task<> {
        async_run(loop.get_executor(), inner());
        order += 'o';
        co_return;
    };
    loop.run(outer());
    EXPECT_EQ(order, "oi");
}

TEST_F(async_run_test, completes_with_the_value) {
    std::optional<std::string> got;
    async_run(
        loop.get_executor(), []() -> task<std::string> { co_return "done"; }(), {},
        [&](task_result<std::string>& r) { got = r.take(); });
    loop.run();
    EXPECT_EQ(got, "done");
}

TEST_F(async_run_test, completes_with_the_exception) {
    bool thrown = false;
    auto const fail = []() -> task<int> {
        throw std::runtime_error("because");
        co_return 1;
    };
    async_run(loop.get_executor(), fail(), {}, [&](task_result<int>& r) {
        EXPECT_FALSE(r.has_value());
        EXPECT_THROW((void)r.take(), std::runtime_error);
        thrown = true;
    });
    loop.run();
    EXPECT_TRUE(thrown);
}

TEST_F(async_run_test, completes_on_the_executor_after_the_locals_and_parameters_are_gone) {
    int alive = 0;
    bool completed = false;
    auto const run = [&](counted) -> task<> {
        counted const local(alive);
        co_return;
    };
    async_run(loop.get_executor(), run(counted(alive)), {}, [&](task_result<void>&) {
        EXPECT_TRUE(loop.get_executor().running_in_this_thread());
        EXPECT_EQ(alive, 0);
        completed = true;
    });
    loop.run();
    EXPECT_TRUE(completed);
}

TEST_F(async_run_test, takes_a_completion_that_can_only_be_moved) {
    int got = 0;
    async_run(
        loop.get_executor(), []() -> task<int> { co_return 3; }(), {},
        [&got, add = std::make_unique<int>(4)](task_result<int>& r) { got = r.take() + *add; });
    loop.run();
    EXPECT_EQ(got, 7);
}

TEST_F(async_run_test, destroys_the_task_and_the_completion_once_it_has_completed) {
    int alive = 0;
    async_run(
        loop.get_executor(), [](counted) -> task<> { co_return; }(counted(alive)), {},
        [c = counted(alive)](task_result<void>&) {});
    EXPECT_EQ(alive, 2);
    loop.run();
    EXPECT_EQ(alive, 0);
}

TEST_F(async_run_test, a_root_that_has_not_started_ends_with_its_loop) {
    int alive = 0;
    {
        manual_loop other;
        async_run(
            other.get_executor(), [](counted) -> task<> { co_return; }(counted(alive)), {},
            [c = counted(alive)](task_result<void>&) { ADD_FAILURE(); });
        EXPECT_EQ(alive, 2);
    }
    EXPECT_EQ(alive, 0);
}

TEST_F(async_run_test, roots_end_with_their_loop_the_youngest_first) {
    std::string order;
    struct last_words {
        std::string& into;
        char what;
        ~last_words() { into += what; }
    };
    {
        manual_loop other;
        gate closed[3];
        auto const wait = [&](char name) -> task<> {
            last_words const words{order, name};
            co_await closed[name - 'a'];
        };
        for (char const name : {'a', 'b', 'c'}) {
            async_run(other.get_executor(), wait(name));
        }
        other.run();
    }
    EXPECT_EQ(order, "cba");
}

TEST_F(async_run_test, what_was_launched_since_the_first_root_of_a_source_can_be_destroyed) {
    std::string order;
    struct last_words {
        std::string& into;
        char what;
        ~last_words() { into += what; }
    };
    gate closed[4];
    {
        stop_source stop(loop.get_executor());
        auto const wait = [&](char name) -> task<> {
            last_words const words{order, name};
            co_await closed[name - 'a'];
        };
        async_run(loop.get_executor(), wait('a'));
        async_run(loop.get_executor(), wait('b'), stop.token());
        async_run(loop.get_executor(), wait('c'));
        async_run(loop.get_executor(), wait('d'), stop.token());
        loop.run();
        while (loop.roots().destroy_youngest_since(stop)) {
        }
        EXPECT_EQ(order, "dcb");
    }
    EXPECT_TRUE(closed[0].open());
    EXPECT_EQ(order, "dcba");
}

TEST_F(async_run_test, what_is_launched_while_the_loop_ends_never_runs) {
    int alive = 0;
    bool ran = false;
    gate never;
    auto const late = [&](counted) -> task<> {
        ran = true;
        co_return;
    };
    struct launches {
        std::function<void()> launch;
        ~launches() { launch(); }
    };
    {
        manual_loop ending;
        auto const waits = [&](manual_loop& on) -> task<> {
            launches const at_end{[&] { async_run(on.get_executor(), late(counted(alive))); }};
            co_await never;
        };
        async_run(ending.get_executor(), waits(ending));
        ending.run();
    }
    EXPECT_FALSE(ran);
    EXPECT_EQ(alive, 0);
}

TEST_F(async_run_test, takes_an_executor_by_reference_too) {
    bool ran = false;
    auto const run = [&]() -> task<> {
        EXPECT_EQ((co_await this_env()).executor, executor_ref(loop.get_executor()));
        ran = true;
    };
    async_run(executor_ref(loop.get_executor()), run());
    loop.run();
    EXPECT_TRUE(ran);
}

TEST_F(async_run_test, owns_a_copy_of_its_executor) {
    bool ran = false;
    auto const run = [&]() -> task<> {
        ran = true;
        co_return;
    };
    {
        auto const copy = loop.get_executor();
        async_run(copy, run());
    }
    loop.run();
    EXPECT_TRUE(ran);
}

using async_run_death_test = async_run_test;

TEST_F(async_run_death_test, an_exception_that_nobody_awaits_ends_the_process_with_a_message) {
    auto const fail = []() -> task<> {
        throw std::runtime_error("nobody looks");
        co_return;
    };
    EXPECT_DEATH(
        {
            async_run(loop.get_executor(), fail());
            loop.run();
        },
        "plumb: an exception left a coroutine that was launched by async_run");
}

TEST_F(async_run_death_test, so_does_one_of_the_completion) {
    EXPECT_DEATH(
        {
            async_run(
                loop.get_executor(), []() -> task<> { co_return; }(), {},
                [](task_result<void>&) { throw std::runtime_error("nobody looks"); });
            loop.run();
        },
        "plumb: an exception left a coroutine that was launched by async_run");
}

class async_run_context_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, async_run_context_test, every_backend(), name_of_backend);

TEST_P(async_run_context_test, a_task_does_io) {
    auto ends = pipe();
    auto const write = [&]() -> task<> {
        auto const done = co_await ends.writer.co_write(const_buffer("hello", 5));
        EXPECT_EQ(done.bytes_transferred(), 5u);
    };
    auto const read = [&]() -> task<std::string> {
        std::array<std::byte, 16> memory;
        co_return text_of(co_await ends.reader.co_read(buffer(memory)));
    };
    ends.reader.set_multiplexer(context().multiplexer());
    ends.writer.set_multiplexer(context().multiplexer());
    launch(write());
    EXPECT_EQ(run(read()), "hello");
}

TEST_P(async_run_context_test, roots_end_with_their_context_with_every_operation_in_flight) {
    int alive = 0;
    auto quiet = tcp_pair();
    auto full = tcp_pair();
    auto silent = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    for (auto* const h : {&quiet.first, &quiet.second, &full.first, &full.second}) {
        h->set_multiplexer(context().multiplexer());
    }
    std::vector<std::byte> const much(1 << 16);
    std::array<std::byte, 16> memory;
    auto const read = [&](counted) -> task<> {
        (void)co_await quiet.first.co_read(buffer(memory));
    };
    auto const read_pooled = [&](counted) -> task<> {
        (void)co_await io_awaitable<async_read_pooled>(async_read_pooled(quiet.second, 4096));
    };
    auto const write = [&](counted) -> task<> {
        while (co_await full.first.co_write(const_buffer(much))) {
        }
    };
    auto const accept = [&](counted) -> task<> { (void)co_await silent.co_accept(); };
    auto const wait = [&](counted) -> task<> { (void)co_await co_wait(1h); };
    auto const nested = [&](counted) -> task<> { co_await wait(counted(alive)); };
    launch(read(counted(alive)));
    launch(read_pooled(counted(alive)));
    launch(write(counted(alive)));
    launch(accept(counted(alive)));
    launch(wait(counted(alive)));
    launch(nested(counted(alive)));
    auto const end = [&]() -> task<> {
        (void)co_await co_wait(10ms);
        context().stop();
    };
    launch(end());
    run();
    EXPECT_GE(alive, 6);
    end_context();
    EXPECT_EQ(alive, 0);
}

TEST_P(async_run_context_test, roots_that_have_not_started_end_with_their_context) {
    int alive = 0;
    auto const wait = [](counted) -> task<> { (void)co_await co_wait(1h); };
    launch(wait(counted(alive)));
    launch(wait(counted(alive)));
    end_context();
    EXPECT_EQ(alive, 0);
}

TEST_P(async_run_context_test, a_root_may_outlive_a_stop_of_its_context) {
    int step = 0;
    auto const go = [&]() -> task<> {
        step = 1;
        (void)co_await co_wait(20ms);
        step = 2;
    };
    launch(go());
    auto const end = [&]() -> task<> {
        context().stop();
        co_return;
    };
    launch(end());
    run();
    EXPECT_EQ(step, 1);
    run();
    EXPECT_EQ(step, 2);
}

class async_run_thread_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, async_run_thread_test, real_backends(), name_of_backend);

TEST_P(async_run_thread_test, a_context_that_another_thread_ran_ends_here) {
    int alive = 0;
    auto const wait = [](counted) -> task<> { (void)co_await co_wait(1h); };
    launch(wait(counted(alive)));
    auto const end = [&]() -> task<> {
        context().stop();
        co_return;
    };
    launch(end());
    std::thread([&] { run(); }).join();
    EXPECT_EQ(alive, 1);
    end_context();
    EXPECT_EQ(alive, 0);
}

TEST_P(async_run_context_test,
       a_million_operations_that_complete_at_once_use_constant_stack_and_let_others_run) {
    auto ends = pipe();
    ends.reader.set_multiplexer(context().multiplexer());
    std::size_t turns = 0;
    bool over = false;
    auto const other = [&]() -> task<> {
        while (!over) {
            (void)co_await co_wait(1us);
            ++turns;
        }
    };
    auto const busy = [&]() -> task<int> {
        int count = 0;
        for (int i = 0; i < 1'000'000; ++i) {
            auto const got = co_await ends.reader.co_read(buffer());
            count += got && got.bytes_transferred() == 0 ? 1 : 0;
        }
        over = true;
        co_return count;
    };
    launch(other());
    EXPECT_EQ(run(busy()), 1'000'000);
    EXPECT_GT(turns, 100u);
}

}  // namespace
}  // namespace plumb::test
