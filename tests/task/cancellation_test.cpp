// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/stop_token.hpp>

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_send.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>

#include "support/context.hpp"
#include "support/counted_calls.hpp"
#include "support/manual_loop.hpp"
#include "support/silent_host.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

enum class operation_kind : std::uint8_t {
    read,
    read_pooled,
    write,
    accept,
    connect,
    receive,
    send,
    wait
};

/// One operation of each kind that doesn't complete by itself, and what lets it.
class cancellation_test : public on_every_context {
protected:
    void SetUp() override {
        on_every_context::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            prepare();
        }
    }
    void TearDown() override {
        reading.reset();
        writing.reset();
        silent.reset();
        for (auto* const s : {&receiver, &full, &sender}) {
            *s = {};
        }
        on_every_context::TearDown();
    }

    static constexpr std::array all{operation_kind::read,    operation_kind::read_pooled,
                                    operation_kind::write,   operation_kind::accept,
                                    operation_kind::connect, operation_kind::receive,
                                    operation_kind::send,    operation_kind::wait};

    void prepare() {
        reading = tcp_pair();
        writing = socket_pair();
        for (auto* const h :
             {&reading->first, &reading->second, &writing->first, &writing->second}) {
            h->set_multiplexer(context().multiplexer());
        }
        while (writing->first.try_write(const_buffer(much))) {
        }
        listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
        listener.set_multiplexer(context().multiplexer());
        silent.emplace();
        auto const unix_domain = endpoint::family_type::unix_domain;
        for (auto* const s : {&receiver, &full, &sender}) {
            *s = datagram_socket_handle::datagram_socket(unix_domain).value();
            s->bind(endpoint::unix_unnamed()).value();
            s->set_multiplexer(context().multiplexer());
        }
        sender.connect(full.local().value()).value();
        while (sender.try_write(const_buffer("x", 1))) {
        }
    }

    /// Awaits one operation. @return its error, none on success
    task<std::error_code> perform(operation_kind kind) {
        switch (kind) {
        case operation_kind::read: {
            auto const r = co_await reading->second.co_read(buffer(memory));
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::read_pooled: {
            auto const r =
                co_await io_awaitable<async_read_pooled>(async_read_pooled(reading->second, 64));
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::write: {
            auto const r = co_await writing->first.co_write(const_buffer(much));
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::accept: {
            auto const r = co_await listener.co_accept();
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::connect: {
            auto socket = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
            auto const r = co_await socket.co_connect(silent->where());
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::receive: {
            auto const r = co_await receiver.co_receive(buffer(memory));
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::send: {
            auto const r = co_await sender.co_send(const_buffer("x", 1), full.local().value());
            co_return r ? std::error_code() : r.error();
        }
        case operation_kind::wait: {
            auto const r = co_await co_wait(1h);
            co_return r ? std::error_code() : r.error();
        }
        }
        co_return std::make_error_code(std::errc::invalid_argument);
    }

    /// Lets what `perform` awaits complete; not for a connect and a wait.
    void let(operation_kind kind) {
        switch (kind) {
        case operation_kind::read:
        case operation_kind::read_pooled:
            (void)reading->first.try_write(const_buffer("x", 1)).value();
            break;
        case operation_kind::write: {
            std::vector<std::byte> sink(1 << 20);
            while (writing->second.try_read_for(buffer(sink), 20ms)) {
            }
            break;
        }
        case operation_kind::accept: {
            clients.push_back(
                stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value());
            clients.back().connect(listener.local().value(), patience).value();
            break;
        }
        case operation_kind::receive:
            (void)receiver.send(const_buffer("x", 1), receiver.local().value()).value();
            break;
        case operation_kind::send:
            while (full.receive(buffer(memory), 0s)) {
            }
            break;
        default:
            break;
        }
    }

    std::array<std::byte, 64> memory{};
    std::vector<std::byte> const much = std::vector<std::byte>(1 << 16);
    std::optional<stream_socket_handle::pair> reading;
    std::optional<stream_socket_handle::pair> writing;
    listen_socket_handle listener;
    std::optional<silent_host> silent;
    std::vector<stream_socket_handle> clients;
    datagram_socket_handle receiver;
    datagram_socket_handle sender;
    datagram_socket_handle full;
};

INSTANTIATE_TEST_SUITE_P(backends, cancellation_test, every_backend(), name_of_backend);

TEST_P(cancellation_test, a_stop_from_before_makes_no_system_call) {
    for (auto const kind : all) {
        let(kind);
        stop_source stop(executor());
        stop.request_stop();
        run();
        auto const before = context().multiplexer().counters().completions;
        auto const started = now();
        std::error_code got;
        {
            counted_calls const calls;
            got = run(perform(kind), stop.token());
            EXPECT_EQ(calls.made(), 0u) << int(kind);
        }
        EXPECT_EQ(got, std::errc::operation_canceled) << int(kind);
        EXPECT_EQ(context().multiplexer().counters().completions, before) << int(kind);
        EXPECT_LT(now() - started, 1min);
    }
    // Nothing was lost: what was let happen can still be had.
    EXPECT_EQ(run(perform(operation_kind::accept)), std::error_code());
    EXPECT_EQ(run(perform(operation_kind::read)), std::error_code());
}

TEST_P(cancellation_test, a_stop_during_an_operation_cancels_it_once) {
    for (auto const kind : all) {
        stop_source stop(executor());
        int completions = 0;
        std::error_code got;
        auto const wait = [&]() -> task<> {
            got = co_await perform(kind);
            ++completions;
        };
        auto const request = [&]() -> task<> {
            (void)co_await co_wait(5ms);
            EXPECT_EQ(completions, 0) << int(kind);
            EXPECT_TRUE(stop.request_stop());
            EXPECT_FALSE(stop.request_stop());
        };
        launch(wait(), stop.token());
        launch(request());
        run();
        EXPECT_EQ(completions, 1) << int(kind);
        EXPECT_EQ(got, std::errc::operation_canceled) << int(kind);
    }
}

TEST_P(cancellation_test, an_operation_goes_on_after_another_was_cancelled) {
    for (auto const kind : {operation_kind::read, operation_kind::read_pooled,
                            operation_kind::accept, operation_kind::receive}) {
        stop_source stop(executor());
        auto const request = [&]() -> task<> {
            (void)co_await co_wait(5ms);
            stop.request_stop();
        };
        launch(request());
        EXPECT_EQ(run(perform(kind), stop.token()), std::errc::operation_canceled) << int(kind);
        let(kind);
        EXPECT_EQ(run(perform(kind)), std::error_code()) << int(kind);
    }
}

TEST_P(cancellation_test, a_stop_that_races_the_completion_gives_one_of_both_and_loses_nothing) {
    for (auto const kind :
         {operation_kind::read, operation_kind::read_pooled, operation_kind::accept,
          operation_kind::receive, operation_kind::send}) {
        for (bool const stop_first : {true, false}) {
            stop_source stop(executor());
            int completions = 0;
            std::error_code got;
            auto const wait = [&]() -> task<> {
                got = co_await perform(kind);
                ++completions;
            };
            auto const race = [&]() -> task<> {
                (void)co_await co_wait(5ms);
                if (stop_first) {
                    stop.request_stop();
                    let(kind);
                } else {
                    let(kind);
                    stop.request_stop();
                }
            };
            launch(wait(), stop.token());
            launch(race());
            run();
            EXPECT_EQ(completions, 1);
            if (got) {
                EXPECT_EQ(got, std::errc::operation_canceled);
                EXPECT_EQ(run(perform(kind)), std::error_code()) << "what came was lost";
            }
        }
    }
}

TEST_P(cancellation_test, a_stop_reaches_the_innermost_of_nested_tasks) {
    stop_source stop(executor());
    struct nested {
        static task<std::error_code> above(task<std::error_code> inner, int depth) {
            if (depth == 0) {
                co_return co_await std::move(inner);
            }
            co_return co_await above(std::move(inner), depth - 1);
        }
    };
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    EXPECT_EQ(run(nested::above(perform(operation_kind::wait), 50), stop.token()),
              std::errc::operation_canceled);
}

TEST_P(cancellation_test, a_stop_reaches_every_task_that_has_the_token) {
    stop_source stop(executor());
    int canceled = 0;
    auto const wait = [&]() -> task<> {
        canceled += co_await perform(operation_kind::wait) == std::errc::operation_canceled;
    };
    for (int i = 0; i < 100; ++i) {
        launch(wait(), stop.token());
    }
    auto const request = [&]() -> task<> {
        (void)co_await co_wait(1ms);
        stop.request_stop();
    };
    launch(request());
    run();
    EXPECT_EQ(canceled, 100);
}

TEST_P(cancellation_test, a_suspended_task_that_is_destroyed_cancels_its_operation) {
    for (auto const kind : all) {
        int alive = 0;
        {
            auto const wait = [&](counted) -> task<> { (void)co_await perform(kind); };
            stop_source group(executor());
            auto const destroy = [&]() -> task<> {
                (void)co_await co_wait(5ms);
                EXPECT_EQ(alive, 1);
                while (context().roots().destroy_youngest_since(group)) {
                }
                EXPECT_EQ(alive, 0);
            };
            launch(destroy());  // the older one, so that it doesn't end itself
            launch(wait(counted(alive)), group.token());
            run();
        }
        EXPECT_EQ(alive, 0);
    }
    // The handles are as before.
    let(operation_kind::read);
    EXPECT_EQ(run(perform(operation_kind::read)), std::error_code());
    let(operation_kind::accept);
    EXPECT_EQ(run(perform(operation_kind::accept)), std::error_code());
}

/// A stop that is requested by a thread that isn't the context's.
class cancellation_thread_test : public cancellation_test {};

INSTANTIATE_TEST_SUITE_P(backends, cancellation_thread_test, real_backends(), name_of_backend);

TEST_P(cancellation_thread_test, another_thread_cancels_each_operation) {
    for (auto const kind : all) {
        stop_source stop(executor());
        std::thread other([&] {
            std::this_thread::sleep_for(2ms);
            stop.request_stop();
        });
        EXPECT_EQ(run(perform(kind), stop.token()), std::errc::operation_canceled) << int(kind);
        other.join();
        run();
        EXPECT_FALSE(stop.busy());
    }
}

TEST_P(cancellation_thread_test, another_thread_races_the_completion) {
    int canceled = 0;
    for (int round = 0; round < 300; ++round) {
        stop_source stop(executor());
        std::atomic<bool> go = false;
        std::thread other([&] {
            while (!go) {
            }
            stop.request_stop();
        });
        auto const send = [&]() -> task<> {
            go = true;
            for (int i = 0; i < round % 50; ++i) {
                (void)co_await co_wait(1us);
            }
            let(operation_kind::read);
        };
        launch(send());
        auto const got = run(perform(operation_kind::read), stop.token());
        other.join();
        run();
        if (got) {
            ASSERT_EQ(got, std::errc::operation_canceled);
            ++canceled;
            ASSERT_EQ(run(perform(operation_kind::read)), std::error_code());
        }
    }
    RecordProperty("canceled", canceled);
}

}  // namespace
}  // namespace plumb::test
