// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/waits.hpp>

#include <plumb/exec/resumption.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/task/barrier.hpp>
#include <plumb/task/channel.hpp>
#include <plumb/task/condition.hpp>
#include <plumb/task/event.hpp>
#include <plumb/task/latch.hpp>
#include <plumb/task/mutex.hpp>
#include <plumb/task/run_on.hpp>
#include <plumb/task/select.hpp>
#include <plumb/task/semaphore.hpp>
#include <plumb/task/shared_mutex.hpp>
#include <plumb/task/shield.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_all.hpp>

#include "support/context.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using line = std::uint_least32_t;

constexpr line here(std::source_location where = std::source_location::current()) {
    return where.line();
}

struct seen {
    std::string what;
    void const* of;
    line innermost;
    line held_since;
};

std::vector<seen> seen_in(root_list const& roots) {
    std::vector<seen> all;
    visit_waits(roots, [&](async_frame const& root, async_frame const& innermost) {
        auto const wait = wait_of(innermost);
        all.push_back({wait.what, wait.of, innermost.location().line(), wait.held_since.line()});
        async_frame const* top = &innermost;
        while (top->awaiter() != nullptr) {
            top = top->awaiter();
        }
        EXPECT_EQ(top, &root);
    });
    return all;
}

/// Lets what is queued go first.
struct through_the_queue {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h, io_env const& env) const {
        env.executor.post(&make_resumption(h));
    }
    void await_resume() const noexcept {}
};

class waits_test : public ::testing::Test {
protected:
    void launch(task<> t, stop_token stop = {}) {
        async_run(loop.get_executor(), std::move(t), stop, [](auto&) {});
        loop.run();
    }
    std::vector<seen> all() { return seen_in(loop.roots()); }

    gate closed;
    event never;
    line waits_at = 0;
    task<> wait() {
        waits_at = here() + 1;
        (void)co_await never.wait();
    }

    manual_loop loop;  // ends first
};

TEST_F(waits_test, a_context_without_coroutines_has_none) {
    EXPECT_TRUE(all().empty());
    EXPECT_EQ(waits_to_string(loop.roots()), "");
}

TEST_F(waits_test, each_root_has_come_to_its_innermost_coroutine) {
    auto const outer = [&]() -> task<> { co_await shield(wait()); };
    launch(outer());
    launch(wait());
    auto const waits = all();
    ASSERT_EQ(waits.size(), 2u);
    for (auto const& w : waits) {
        EXPECT_EQ(w.what, "event");
        EXPECT_EQ(w.of, &never);
        EXPECT_EQ(w.innermost, waits_at);
    }
}

TEST_F(waits_test, each_primitive_is_named) {
    latch counts(1);
    barrier meets(2);
    condition changes;
    mutex guards;
    mutex locked;
    shared_mutex shared;
    semaphore none(0);
    channel<int> empty(1);
    channel<int> full(0);
    auto const held = locked.try_lock();
    auto const held_shared = shared.try_lock();
    auto const on_latch = [&]() -> task<> { (void)co_await counts.wait(); };
    auto const on_barrier = [&]() -> task<> { (void)co_await meets.arrive_and_wait(); };
    auto const on_condition = [&]() -> task<> {
        auto lock = (co_await guards.lock()).value();
        (void)co_await changes.wait(lock);
    };
    auto const on_mutex = [&]() -> task<> { (void)co_await locked.lock(); };
    auto const on_shared = [&]() -> task<> { (void)co_await shared.lock_shared(); };
    auto const on_semaphore = [&]() -> task<> { (void)co_await none.acquire(); };
    auto const on_receive = [&]() -> task<> { (void)co_await empty.receive(); };
    auto const on_send = [&]() -> task<> {
        int value = 1;
        (void)co_await full.send(std::move(value));
    };
    manual_loop ends;
    auto const start = [&](auto const&... functions) {
        (async_run(ends.get_executor(), functions()), ...);
    };
    start(on_latch, on_barrier, on_condition, on_mutex, on_shared, on_semaphore, on_receive,
          on_send);
    ends.run();
    auto const waits = seen_in(ends.roots());
    ASSERT_EQ(waits.size(), 8u);
    EXPECT_EQ(waits[0].what, "event") << "a latch has one";
    EXPECT_EQ(waits[1].what, "barrier");
    EXPECT_EQ(waits[1].of, &meets);
    EXPECT_EQ(waits[2].what, "condition");
    EXPECT_EQ(waits[2].of, &changes);
    EXPECT_EQ(waits[3].what, "mutex");
    EXPECT_EQ(waits[3].of, &locked);
    EXPECT_EQ(waits[4].what, "shared_mutex");
    EXPECT_EQ(waits[4].of, &shared);
    EXPECT_EQ(waits[5].what, "semaphore");
    EXPECT_EQ(waits[5].of, &none);
    EXPECT_EQ(waits[6].what, "channel (to receive)");
    EXPECT_EQ(waits[6].of, &empty);
    EXPECT_EQ(waits[7].what, "channel (to send)");
    EXPECT_EQ(waits[7].of, &full);
}

TEST_F(waits_test, of_several_at_once_are_a_select) {
    event other;
    auto const either = [&]() -> task<> { (void)co_await select(never.wait(), other.wait()); };
    launch(either());
    ASSERT_EQ(all().size(), 1u);
    EXPECT_EQ(all()[0].what, "select");
    other.set();
    loop.run();
    EXPECT_TRUE(all().empty());
}

TEST_F(waits_test, of_a_mutex_tell_where_its_holder_locked_it) {
    mutex a;
    mutex b;
    manual_loop ends;
    line first_at = 0;
    line second_at = 0;
    auto const first = [&]() -> task<> {
        first_at = here() + 1;
        auto const has = (co_await a.lock()).value();
        co_await through_the_queue{};
        auto const wants = (co_await b.lock()).value();
    };
    auto const second = [&]() -> task<> {
        second_at = here() + 1;
        auto const has = (co_await b.lock()).value();
        co_await through_the_queue{};
        auto const wants = (co_await a.lock()).value();
    };
    async_run(ends.get_executor(), first());
    async_run(ends.get_executor(), second());
    ends.run();
    auto const waits = seen_in(ends.roots());
    ASSERT_EQ(waits.size(), 2u);
    EXPECT_EQ(waits[0].of, &b);
    EXPECT_EQ(waits[0].held_since, second_at);
    EXPECT_EQ(waits[1].of, &a);
    EXPECT_EQ(waits[1].held_since, first_at);
    std::string const text = waits_to_string(ends.roots());
    EXPECT_NE(text.find("waits for mutex 0x"), std::string::npos) << text;
    EXPECT_NE(text.find(", held since "), std::string::npos) << text;
    EXPECT_NE(text.find("waits_test.cpp:" + std::to_string(first_at)), std::string::npos) << text;
}

TEST_F(waits_test, those_that_are_awaited_together_are_found_each) {
    auto const ends = []() -> task<> { co_return; };
    auto const both = [&]() -> task<> { co_await when_all(wait(), ends(), wait()); };
    launch(both());
    EXPECT_EQ(all().size(), 2u);
    never.set();
    loop.run();
    EXPECT_TRUE(all().empty());
}

TEST_F(waits_test, in_a_scope_the_body_and_its_children_are_found) {
    bool go = false;
    event first;
    auto const scoped = [&]() -> task<> {
        co_await task_scope::run([&](task_scope& scope) -> task<> {
            scope.spawn(wait());
            scope.spawn(wait());
            (void)co_await first.wait();
            go = true;
        });
    };
    launch(scoped());
    EXPECT_EQ(all().size(), 3u);
    first.set();
    loop.run();
    EXPECT_TRUE(go);
    EXPECT_EQ(all().size(), 2u);
    never.set();
    loop.run();
    EXPECT_TRUE(all().empty());
}

TEST_F(waits_test, of_one_that_goes_on_is_the_next) {
    event first;
    auto const two = [&]() -> task<> {
        (void)co_await first.wait();
        co_await wait();
        co_await closed;
    };
    launch(two());
    ASSERT_EQ(all().size(), 1u);
    EXPECT_EQ(all()[0].of, &first);
    first.set();
    loop.run();
    EXPECT_EQ(all()[0].of, &never);
    never.set();
    loop.run();
    ASSERT_EQ(all().size(), 1u);
    EXPECT_EQ(all()[0].what, "unknown");
    ASSERT_TRUE(closed.open());
    EXPECT_TRUE(all().empty());
}

TEST_F(waits_test, of_one_that_was_stopped_end) {
    stop_source stop(loop.get_executor());
    launch(wait(), stop.token());
    EXPECT_EQ(all().size(), 1u);
    stop.request_stop();
    loop.run();
    EXPECT_TRUE(all().empty());
}

TEST_F(waits_test, a_task_on_another_executor_is_not_followed) {
    manual_loop other;
    auto const trip = [&]() -> task<> { co_await run_on(other.get_executor(), wait()); };
    launch(trip());
    ASSERT_EQ(all().size(), 1u);
    EXPECT_EQ(all()[0].what, "a task on another executor");
    other.run();
    EXPECT_EQ(all()[0].what, "a task on another executor");
    never.set();
    other.run();
    loop.run();
    EXPECT_TRUE(all().empty());
}

TEST_F(waits_test, a_coroutine_may_list_those_of_its_own_context) {
    launch(wait());
    std::size_t found = 0;
    auto const below = []() -> task<> { co_return; };
    auto const lists = [&]() -> task<> {
        co_await below();  // is gone when it looks
        co_await when_all(below(), below());
        found = all().size();
    };
    launch(lists());
    EXPECT_EQ(found, 2u);
}

// I/o, on every backend.

class waits_of_io_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, waits_of_io_test, every_backend(), name_of_backend);

TEST_P(waits_of_io_test, are_named_by_what_they_do) {
    auto [reader, writer] = pipe_handle::anonymous_pipe().value();
    stop_source stop(executor());
    line read_at = 0;
    auto const reads = [&]() -> task<> {
        std::byte byte{};
        read_at = here() + 1;
        (void)co_await reader.co_read(buffer(&byte, 1));
    };
    auto const sleeps = []() -> task<> { (void)co_await co_wait(1h); };
    std::vector<seen> waits;
    std::string text;
    auto const looks = [&]() -> task<> {
        waits = seen_in(context().roots());
        text = waits_to_string(context().roots());
        stop.request_stop();
        co_return;
    };
    launch(reads(), stop.token());
    launch(sleeps(), stop.token());
    launch(looks());
    run();
    ASSERT_EQ(waits.size(), 3u);
    EXPECT_EQ(waits[0].what, "read");
    EXPECT_EQ(waits[0].innermost, read_at);
    EXPECT_EQ(waits[1].what, "time");
    EXPECT_NE(text.find("waits for read\n[0] "), std::string::npos) << text;
}

TEST_P(waits_of_io_test, are_reported_when_nothing_can_happen_any_more) {
    static int stalls;
    static std::string text;
    stalls = 0;
    context().on_stall([](io_context& c) noexcept {
        ++stalls;
        text = waits_to_string(c.roots());
    });
    event never;
    auto const waits = [&]() -> task<> { (void)co_await never.wait(); };
    auto const ends = []() -> task<> { (void)co_await co_wait(1ms); };
    launch(ends());
    run();
    EXPECT_EQ(stalls, 0) << "all have ended";
    launch(waits());
    run();
    EXPECT_EQ(stalls, 1);
    EXPECT_TRUE(text.starts_with("waits for event 0x")) << text;
    end_context();
}

}  // namespace
}  // namespace plumb::test
