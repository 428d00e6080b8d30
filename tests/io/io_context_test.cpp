// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_context.hpp>

#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <atomic>
#include <coroutine>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class io_context_test : public on_every_backend {
protected:
    std::unique_ptr<io_context> context;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            context = std::make_unique<io_context>(another());
        }
    }
    void TearDown() override { context.reset(); }
};

INSTANTIATE_TEST_SUITE_P(backends, io_context_test, every_backend(), name_of_backend);

/// A coroutine that starts suspended and that its owner destroys.
class step {
public:
    struct promise_type {
        step get_return_object() noexcept { return step(handle_type::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
    using handle_type = std::coroutine_handle<promise_type>;

    step(step&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~step() {
        if (handle_) {
            handle_.destroy();
        }
    }
    [[nodiscard]] std::coroutine_handle<> handle() const noexcept { return handle_; }

private:
    explicit step(handle_type h) noexcept : handle_(h) {}
    handle_type handle_;
};

step count_up(int& counter) {
    ++counter;
    co_return;
}

TEST_P(io_context_test, run_returns_at_once_when_nothing_could_happen) {
    EXPECT_EQ(context->run().value(), 0u);
}

TEST_P(io_context_test, run_goes_on_until_nothing_is_left) {
    record_of<async_wait> first;
    record_of<async_wait> second;
    auto a = connect(async_wait(context->multiplexer(), 1ms), recorder(first));
    auto b = connect(async_wait(context->multiplexer(), 2ms), recorder(second));
    (void)a.start();
    (void)b.start();
    EXPECT_EQ(context->run().value(), 2u);
    EXPECT_TRUE(first.done() && second.done());
}

TEST_P(io_context_test, stop_ends_run_and_the_next_goes_on) {
    record_of<async_wait> waited;
    auto timer = connect(async_wait(context->multiplexer(), 20ms), recorder(waited));
    (void)timer.start();
    ASSERT_TRUE(context->multiplexer().post([&] { context->stop(); }));
    EXPECT_EQ(context->run().value(), 1u);
    EXPECT_TRUE(waited.untold());
    EXPECT_EQ(context->run().value(), 1u);
    EXPECT_TRUE(waited.done());
}

TEST_P(io_context_test, run_some_bounds_the_items_and_the_wait) {
    int ran = 0;
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(context->multiplexer().post([&] {
            EXPECT_TRUE(context->get_executor().running_in_this_thread());
            ++ran;
        }));
    }
    EXPECT_EQ(context->run_some(1).value(), 1);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(context->run_some(-1).value(), 1);
    EXPECT_EQ(ran, 2);
    record_of<async_wait> waited;
    auto timer = connect(async_wait(context->multiplexer(), 1h), recorder(waited));
    (void)timer.start();
    EXPECT_LT(context->run_some(1, 1ms).value(), 0);
    EXPECT_LT(context->run_some(1, 0ms).value(), 0);
    timer.cancel();
    EXPECT_EQ(context->run_some(1).value(), 1);
    EXPECT_TRUE(waited.done());
    EXPECT_EQ(context->run_some(1).value(), 0);
}

TEST_P(io_context_test, a_wake_ends_the_wait_of_run_some) {
    record_of<async_wait> waited;
    auto timer = connect(async_wait(context->multiplexer(), 1h), recorder(waited));
    (void)timer.start();
    context->multiplexer().wake();
    EXPECT_LT(context->run_some(-1).value(), 0);
    EXPECT_TRUE(waited.untold());
}

TEST_P(io_context_test, is_the_multiplexer_of_its_thread_while_it_runs) {
    io_multiplexer* inside = nullptr;
    bool is_inside = false;
    auto const executor = context->get_executor();
    EXPECT_FALSE(executor.running_in_this_thread());
    ASSERT_TRUE(context->multiplexer().post([&] {
        inside = &io_multiplexer::this_thread();
        is_inside = executor.running_in_this_thread();
    }));
    EXPECT_EQ(context->run().value(), 1u);
    EXPECT_EQ(inside, &context->multiplexer());
    EXPECT_TRUE(is_inside);
    EXPECT_FALSE(executor.running_in_this_thread());
    EXPECT_NE(&io_multiplexer::this_thread(), &context->multiplexer());
}

TEST_P(io_context_test, one_may_run_inside_another) {
    io_context other(another());
    int order = 0;
    ASSERT_TRUE(context->multiplexer().post([&] {
        ASSERT_TRUE(other.multiplexer().post([&] {
            EXPECT_TRUE(other.get_executor().running_in_this_thread());
            EXPECT_FALSE(context->get_executor().running_in_this_thread());
            EXPECT_EQ(&io_multiplexer::this_thread(), &other.multiplexer());
            EXPECT_EQ(order++, 0);
        }));
        EXPECT_EQ(other.run().value(), 1u);
        EXPECT_TRUE(context->get_executor().running_in_this_thread());
        EXPECT_EQ(&io_multiplexer::this_thread(), &context->multiplexer());
        EXPECT_EQ(order++, 1);
    }));
    EXPECT_EQ(context->run().value(), 1u);
    EXPECT_EQ(order, 2);
}

TEST_P(io_context_test, dispatch_runs_inline_only_inside) {
    int counter = 0;
    auto const outside = count_up(counter);
    auto const inside = count_up(counter);
    auto const executor = context->get_executor();
    executor.dispatch(outside.handle()).resume();
    EXPECT_EQ(counter, 0) << "ran inline from outside";
    ASSERT_TRUE(context->multiplexer().post([&] {
        EXPECT_EQ(executor.dispatch(inside.handle()), inside.handle());
        executor.dispatch(inside.handle()).resume();
        EXPECT_GE(counter, 1);
    }));
    EXPECT_EQ(context->run().value(), 2u);
    EXPECT_EQ(counter, 2);
}

TEST_P(io_context_test, executors_are_equal_when_their_context_is) {
    io_context const other(another());
    auto const copy = context->get_executor();
    EXPECT_EQ(copy, context->get_executor());
    EXPECT_NE(copy, other.get_executor());
    EXPECT_EQ(&copy.context(), context.get());
    EXPECT_EQ(executor_ref(copy), executor_ref(context->get_executor()));
}

TEST_P(io_context_test, destroyed_it_drops_what_was_posted) {
    auto const alive = std::make_shared<int>(0);
    int counter = 0;
    auto const never = count_up(counter);
    ASSERT_TRUE(context->multiplexer().post([keep = alive] { ADD_FAILURE(); }));
    (void)context->get_executor().dispatch(never.handle());
    context.reset();
    EXPECT_EQ(alive.use_count(), 1);
    EXPECT_EQ(counter, 0);
}

TEST_P(io_context_test, destroyed_it_destroys_its_roots_youngest_first_with_queued_work) {
    // A root that is its own queued work, as a coroutine that was launched and has not begun.
    struct root : root_node, work {
        root(std::vector<int>& o, int n)
            : root_node([](root_node& self) noexcept { delete &static_cast<root&>(self); },
                        nullptr),
              work([](work&) noexcept { ADD_FAILURE(); }),
              order(o),
              number(n) {}
        ~root() { order.push_back(number); }
        std::vector<int>& order;
        int number;
    };
    std::vector<int> order;
    for (int i = 1; i <= 3; ++i) {
        auto* const r = new root(order, i);
        context->roots().add(*r);
        context->get_executor().post(r);
    }
    context.reset();
    EXPECT_EQ(order, (std::vector{3, 2, 1}));
}

TEST_P(io_context_test, the_default_one_runs_on_the_best_multiplexer) {
    io_context best;
    int ran = 0;
    ASSERT_TRUE(best.multiplexer().post([&] { ++ran; }));
    EXPECT_EQ(best.run().value(), 1u);
    EXPECT_EQ(ran, 1);
}

class io_context_threads_test : public io_context_test {};

INSTANTIATE_TEST_SUITE_P(backends, io_context_threads_test, real_backends(), name_of_backend);

TEST_P(io_context_threads_test, stop_from_another_thread_ends_run) {
    for (int i = 0; i < 50; ++i) {
        context->multiplexer().work_started();
        std::thread runner([&] { EXPECT_TRUE(context->run()); });
        context->stop();
        runner.join();
        context->multiplexer().work_finished();
    }
}

TEST_P(io_context_threads_test, coroutines_dispatched_by_other_threads_run_inside) {
    std::atomic<int> counter = 0;
    auto const body = [](io_context& c, std::atomic<int>& n) -> step {
        EXPECT_TRUE(c.get_executor().running_in_this_thread());
        ++n;
        co_return;
    };
    std::vector<step> steps;
    for (int i = 0; i < 100; ++i) {
        steps.push_back(body(*context, counter));
    }
    context->multiplexer().work_started();
    std::thread runner([&] { EXPECT_TRUE(context->run()); });
    for (auto const& s : steps) {
        context->get_executor().dispatch(s.handle()).resume();
    }
    context->multiplexer().work_finished();
    runner.join();
    EXPECT_EQ(counter, 100);
}

}  // namespace
}  // namespace plumb::test
