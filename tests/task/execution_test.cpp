// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/execution.hpp>

#include <plumb/exec/thread_pool.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/channel.hpp>

#include "support/failing_memory.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace plumb::test {
namespace {

/// What a receiver was told.
struct told {
    std::string how;  // "value", "error", "stopped"; more than one of them would be a fault
    int value = 0;
    std::exception_ptr error;
    bool inside = false;
    std::function<bool()> is_inside = [] { return false; };
    standard_stop_source stop;
};

/// Writes it down.
class recorder {
    struct environment {
        told* into;
        [[nodiscard]] standard_stop_token query(standard::get_stop_token_t) const noexcept {
            return into->stop.get_token();
        }
    };

public:
    using receiver_concept = standard::receiver_t;

    explicit recorder(told& into) noexcept : into_(&into) {}
    void set_value() noexcept { note("value"); }
    void set_value(int v) noexcept {
        into_->value = v;
        note("value");
    }
    void set_value(std::unique_ptr<int> v) noexcept { set_value(*v); }
    void set_value(buffers filled) noexcept { set_value(static_cast<int>(filled.bytes())); }
    void set_error(std::exception_ptr e) noexcept {
        into_->error = std::move(e);
        note("error");
    }
    void set_stopped() noexcept { note("stopped"); }
    [[nodiscard]] environment get_env() const noexcept { return {into_}; }

private:
    void note(char const* how) noexcept {
        into_->inside = into_->is_inside();
        into_->how += how;
    }
    told* into_;
};

static_assert(standard::receiver<recorder>);
static_assert(standard::scheduler<executor_scheduler<thread_pool::executor_type>>);
static_assert(standard::scheduler<executor_scheduler<executor_ref>>);
static_assert(standard::sender<task_sender<thread_pool::executor_type, int>>);

/// Completes as it is told to, where it is started.
template <class Complete, class... Signatures>
class at_once {
public:
    using sender_concept = standard::sender_t;
    using completion_signatures = standard::completion_signatures<Signatures...>;
    template <class, class...>
    static consteval completion_signatures get_completion_signatures() noexcept {
        return {};
    }
    explicit at_once(Complete c) : complete_(std::move(c)) {}

    template <class Receiver>
    struct operation {
        using operation_state_concept = standard::operation_state_t;
        Complete complete;
        Receiver to;
        void start() & noexcept { complete(to); }
    };
    template <standard::receiver Receiver>
    operation<Receiver> connect(Receiver to) const {
        return {complete_, std::move(to)};
    }

private:
    Complete complete_;
};
template <class... Signatures, class Complete>
auto completes(Complete c) {
    return at_once<Complete, Signatures...>(std::move(c));
}
auto just(int value) {
    return completes<standard::set_value_t(int)>(
        [value](auto& to) noexcept { standard::set_value(std::move(to), int(value)); });
}

/// Completes as stopped, when it is.
class until_stopped {
public:
    using sender_concept = standard::sender_t;
    using completion_signatures =
        standard::completion_signatures<standard::set_value_t(), standard::set_stopped_t()>;
    template <class, class...>
    static consteval completion_signatures get_completion_signatures() noexcept {
        return {};
    }

    template <class Receiver>
    class operation {
    public:
        using operation_state_concept = standard::operation_state_t;
        explicit operation(Receiver to) noexcept : to_(std::move(to)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            callback_.emplace(standard::get_stop_token(standard::get_env(to_)), call{this});
        }

    private:
        struct call {
            operation* of;
            void operator()() const noexcept { standard::set_stopped(std::move(of->to_)); }
        };
        using token = standard::stop_token_of_t<standard::env_of_t<Receiver>>;
        Receiver to_;
        std::optional<standard::stop_callback_for_t<token, call>> callback_;
    };
    template <standard::receiver Receiver>
    operation<Receiver> connect(Receiver to) const {
        return operation<Receiver>(std::move(to));
    }
};

/// Throws where it is connected.
struct refuses {
    using sender_concept = standard::sender_t;
    using completion_signatures = standard::completion_signatures<standard::set_value_t()>;
    template <class, class...>
    static consteval completion_signatures get_completion_signatures() noexcept {
        return {};
    }
    struct operation {
        using operation_state_concept = standard::operation_state_t;
        void start() & noexcept {}
    };
    template <standard::receiver Receiver>
    operation connect(Receiver) const {
        throw std::runtime_error("no");
    }
};

class execution_test : public ::testing::Test {
protected:
    execution_test() {
        seen.is_inside = [this] { return loop.get_executor().running_in_this_thread(); };
    }
    template <class Sender>
    auto connected(Sender s) {
        return standard::connect(std::move(s), recorder(seen));
    }

    manual_loop loop;
    told seen;
};

// Executors as schedulers.

TEST_F(execution_test, an_executor_schedules) {
    auto const scheduler = as_scheduler(loop.get_executor());
    EXPECT_EQ(scheduler, as_scheduler(loop.get_executor()));
    manual_loop other;
    EXPECT_NE(scheduler, as_scheduler(other.get_executor()));
    auto const s = standard::schedule(scheduler);
    EXPECT_EQ(standard::get_completion_scheduler<standard::set_value_t>(standard::get_env(s)),
              scheduler);
    auto operation = connected(s);
    standard::start(operation);
    EXPECT_EQ(seen.how, "") << "it is posted";
    loop.run();
    EXPECT_EQ(seen.how, "value");
    EXPECT_TRUE(seen.inside);
}

TEST_F(execution_test, what_is_scheduled_and_stopped_or_dropped_completes_as_stopped) {
    auto operation = connected(standard::schedule(as_scheduler(loop.get_executor())));
    standard::start(operation);
    seen.stop.request_stop();
    loop.run();
    EXPECT_EQ(seen.how, "stopped");
    told dropped;
    std::optional<manual_loop> ends(std::in_place);
    auto other = standard::connect(standard::schedule(as_scheduler(ends->get_executor())),
                                   recorder(dropped));
    standard::start(other);
    ends.reset();
    EXPECT_EQ(dropped.how, "stopped");
}

// Tasks as senders.

TEST_F(execution_test, a_task_completes_with_its_value_on_its_executor) {
    auto const f = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(7); };
    auto operation = connected(as_sender(loop.get_executor(), f()));
    EXPECT_EQ(loop.count(), 0u);
    standard::start(operation);
    loop.run();
    EXPECT_EQ(seen.how, "value");
    EXPECT_EQ(seen.value, 7);
    EXPECT_TRUE(seen.inside);
    told nothing;
    auto const g = []() -> task<> { co_return; };
    auto other = standard::connect(as_sender(loop.get_executor(), g()), recorder(nothing));
    standard::start(other);
    loop.run();
    EXPECT_EQ(nothing.how, "value");
}

TEST_F(execution_test, a_task_completes_with_its_exception) {
    auto const f = []() -> task<int> {
        throw std::runtime_error("no");
        co_return 1;
    };
    auto operation = connected(as_sender(loop.get_executor(), f()));
    standard::start(operation);
    loop.run();
    EXPECT_EQ(seen.how, "error");
    EXPECT_THROW(std::rethrow_exception(seen.error), std::runtime_error);
}

TEST_F(execution_test, a_task_without_memory_to_be_launched_completes_once_with_bad_alloc) {
    auto const f = []() -> task<int> { co_return 1; };
    auto operation = connected(as_sender(loop.get_executor(), f()));
    standard::start(operation);
    {
        emptied_pool const held;
        failing_memory const memory(1);
        loop.run();
        EXPECT_TRUE(memory.failed());
    }
    EXPECT_EQ(seen.how, "error");
    EXPECT_THROW(std::rethrow_exception(seen.error), std::bad_alloc);
}

TEST_F(execution_test, a_stop_of_the_receiver_reaches_the_task) {
    channel<int> never(1);
    auto const f = [&]() -> task<int> {
        auto const got = co_await never.receive();
        co_return got.value();
    };
    auto operation = connected(as_sender(loop.get_executor(), f()));
    standard::start(operation);
    loop.run();
    EXPECT_EQ(seen.how, "");
    seen.stop.request_stop();
    loop.run();
    EXPECT_EQ(seen.how, "stopped");
}

TEST_F(execution_test, a_task_that_ends_with_its_context_completes_as_stopped) {
    channel<int> never(1);
    auto const f = [&]() -> task<int> { co_return (co_await never.receive()).value(); };
    std::optional<manual_loop> ends(std::in_place);
    auto operation = standard::connect(as_sender(ends->get_executor(), f()), recorder(seen));
    standard::start(operation);
    ends->run();
    ends.reset();
    EXPECT_EQ(seen.how, "stopped");
}

TEST_F(execution_test, one_that_is_never_started_runs_nothing) {
    bool ran = false;
    auto const f = [&]() -> task<int> {
        ran = true;
        co_return 1;
    };
    {
        auto operation = connected(as_sender(loop.get_executor(), f()));
    }
    loop.run();
    EXPECT_FALSE(ran);
    EXPECT_EQ(seen.how, "");
}

TEST(execution_io, a_sender_of_plumb_is_a_standard_one) {
    io_context context;
    auto [reading, writing] = pipe_handle::anonymous_pipe().value();
    std::array<std::byte, 16> room{};
    buffer const b(room);
    told seen;
    auto operation = standard::connect(
        as_sender(context.get_executor(), async_read(reading, {b, 0})), recorder(seen));
    standard::start(operation);
    std::array<std::byte, 3> const three{};
    ASSERT_TRUE(writing.write({const_buffer(three), 0}));
    ASSERT_TRUE(context.run());
    EXPECT_EQ(seen.how, "value");
    EXPECT_EQ(seen.value, 3);
    told stopped;
    auto other = standard::connect(as_sender(context.get_executor(), async_read(reading, {b, 0})),
                                   recorder(stopped));
    standard::start(other);
    std::thread stops([&] { stopped.stop.request_stop(); });
    ASSERT_TRUE(context.run());
    stops.join();
    ASSERT_TRUE(context.run());
    EXPECT_EQ(stopped.how, "stopped");
}

// Senders that tasks await.

TEST_F(execution_test, awaiting_a_sender_gives_its_value) {
    auto const f = []() -> task<int> {
        int const one = co_await from_sender(just(1));
        auto const lasting = just(2);
        int const two = co_await from_sender(lasting);
        co_await from_sender(completes<standard::set_value_t()>(
            [](auto& to) noexcept { standard::set_value(std::move(to)); }));
        auto const [three, four] = co_await from_sender(completes<standard::set_value_t(int, int)>(
            [](auto& to) noexcept { standard::set_value(std::move(to), 3, 4); }));
        co_return one * 1000 + two * 100 + three * 10 + four;
    };
    EXPECT_EQ(loop.run(f()), 1234);
}

TEST_F(execution_test, awaiting_a_sender_throws_its_error) {
    auto const code = []() -> task<> {
        co_await from_sender(
            completes<standard::set_value_t(), standard::set_error_t(std::error_code)>(
                [](auto& to) noexcept {
                    standard::set_error(std::move(to),
                                        std::make_error_code(std::errc::connection_refused));
                }));
    };
    EXPECT_THROW(loop.run(code()), std::system_error);
    auto const other = []() -> task<> {
        co_await from_sender(completes<standard::set_error_t(int)>(
            [](auto& to) noexcept { standard::set_error(std::move(to), 5); }));
    };
    EXPECT_THROW(loop.run(other()), int);
}

TEST_F(execution_test, awaiting_a_sender_that_cannot_be_connected_throws_why) {
    auto const f = []() -> task<> { co_await from_sender(refuses()); };
    EXPECT_THROW(loop.run(f()), std::runtime_error);
}

TEST_F(execution_test, a_sender_that_was_stopped_is_a_cancelled_operation) {
    auto const f = []() -> task<bool> {
        try {
            co_await from_sender(completes<standard::set_value_t(), standard::set_stopped_t()>(
                [](auto& to) noexcept { standard::set_stopped(std::move(to)); }));
        } catch (...) {
            co_return is_cancellation(std::current_exception());
        }
        co_return false;
    };
    EXPECT_TRUE(loop.run(f()));
}

TEST_F(execution_test, a_stop_of_the_coroutine_reaches_the_sender) {
    std::string order;
    auto const f = [&]() -> task<> {
        try {
            co_await from_sender(until_stopped());
        } catch (std::system_error const& e) {
            order += e.code() == std::errc::operation_canceled ? '-' : '?';
        }
    };
    stop_source stop(loop.get_executor());
    async_run(loop.get_executor(), f(), stop.token());
    loop.run();
    EXPECT_EQ(order, "");
    stop.request_stop();
    loop.run();
    EXPECT_EQ(order, "-");
    bool started = false;
    auto const g = [&]() -> task<> {
        co_await from_sender(completes<standard::set_value_t()>([&](auto& to) noexcept {
            started = true;
            standard::set_value(std::move(to));
        }));
    };
    EXPECT_THROW(loop.run(g(), stop.token()), std::system_error);
    EXPECT_FALSE(started) << "it was stopped before";
}

TEST_F(execution_test, a_sender_finds_the_executor_of_the_coroutine) {
    auto const f = [&]() -> task<bool> {
        bool same = false;
        co_await from_sender(completes<standard::set_value_t()>([&](auto& to) noexcept {
            same = standard::get_scheduler(standard::get_env(to)) ==
                   as_scheduler(executor_ref(loop.get_executor()));
            standard::set_value(std::move(to));
        }));
        co_return same;
    };
    EXPECT_TRUE(loop.run(f()));
}

// On threads.

TEST(execution_on_threads, the_context_goes_on_while_a_sender_is_awaited) {
    io_context context;
    thread_pool other(1);
    int done = 0;
    auto const f = [&]() -> task<> {
        for (; done < 30; ++done) {
            co_await from_sender(standard::schedule(as_scheduler(other.get_executor())));
        }
    };
    async_run(context.get_executor(), f());
    ASSERT_TRUE(context.run());
    EXPECT_EQ(done, 30);
}

TEST(execution_on_threads, whichever_thread_completes_it_the_coroutine_goes_on_on_its_executor) {
    thread_pool pool(2);
    thread_pool other(2);
    std::atomic<int> wrong = 0;
    std::atomic<int> done = 0;
    auto const f = [&]() -> task<> {
        for (int i = 0; i < 300; ++i) {
            co_await from_sender(standard::schedule(as_scheduler(other.get_executor())));
            wrong += pool.get_executor().running_in_this_thread() ? 0 : 1;
        }
        ++done;
    };
    for (int i = 0; i < 3; ++i) {
        async_run(pool.get_executor(), f());
    }
    pool.join();
    other.join();
    EXPECT_EQ(done, 3);
    EXPECT_EQ(wrong, 0);
}

TEST(execution_on_threads, a_stop_races_the_end_of_a_task_and_it_completes_once) {
    for (int round = 0; round < 100; ++round) {
        told seen;
        thread_pool pool(2);
        auto const f = [&]() -> task<int> { co_return 1; };
        auto operation = standard::connect(as_sender(pool.get_executor(), f()), recorder(seen));
        standard::start(operation);
        seen.stop.request_stop();
        pool.join();
        ASSERT_TRUE(seen.how == "value" || seen.how == "stopped") << seen.how;
    }
}

}  // namespace
}  // namespace plumb::test
