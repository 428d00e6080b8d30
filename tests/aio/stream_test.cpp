// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/stream.hpp>

#include <plumb/aio/incomplete.hpp>
#include <plumb/aio/sleep.hpp>
#include <plumb/base/error.hpp>
#include <plumb/task/with_stop.hpp>

#include "support/context.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

const_buffer text(std::string_view s) { return const_buffer(s.data(), s.size()); }

class stream_test : public on_every_context {
protected:
    void SetUp() override {
        on_every_context::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            open(tcp_pair());
        }
    }
    void TearDown() override {
        near_.reset();
        far_.reset();
        on_every_context::TearDown();
    }
    void open(stream_socket_handle::pair p) {
        p.first.set_multiplexer(context().multiplexer());
        p.second.set_multiplexer(context().multiplexer());
        near_.emplace(std::move(p.first));
        far_.emplace(std::move(p.second));
    }

    aio::stream& near() { return *near_; }
    aio::stream& far() { return *far_; }

    /// Sends parts with a pause before each, so that they arrive one by one.
    task<> send(std::vector<std::string> parts, std::chrono::milliseconds pause = 2ms) {
        for (auto const& part : parts) {
            co_await aio::sleep(pause);
            co_await far().write(text(part));
        }
    }
    task<> send_and_close(std::vector<std::string> parts) {
        co_await send(std::move(parts));
        far().close();
    }

    /// What a read failed with, and how much it says had come.
    struct failure {
        std::error_code code;
        std::optional<std::size_t> moved;
        std::size_t wanted = 0;
    };
    template <class A>
    static task<failure> failure_of(A awaited) {
        try {
            (void)co_await std::move(awaited);
        } catch (aio::incomplete const& e) {
            co_return failure{e.code(), e.bytes_transferred(), e.bytes_wanted()};
        } catch (std::system_error const& e) {
            co_return failure{e.code(), std::nullopt};
        }
        co_return failure{};
    }
    static task<failure> failure_of_read(aio::stream& s) {
        try {
            (void)co_await s.read(100);
        } catch (std::system_error const& e) {
            co_return failure{e.code(), std::nullopt};
        }
        co_return failure{};
    }
    static task<failure> failure_of_write(aio::stream& s, const_buffer data, deadline limit = {}) {
        try {
            co_await s.write(data, limit);
        } catch (aio::incomplete const& e) {
            co_return failure{e.code(), e.bytes_transferred(), e.bytes_wanted()};
        } catch (std::system_error const& e) {
            co_return failure{e.code(), std::nullopt};
        }
        co_return failure{};
    }
    static task<std::string> some(aio::stream& s, std::size_t most) {
        auto const got = co_await s.read(most);
        co_return std::string(got.view());
    }
    static task<std::string> string_of(task<aio::bytes> t) {
        auto const got = co_await std::move(t);
        co_return std::string(got.view());
    }

private:
    std::optional<aio::stream> near_;
    std::optional<aio::stream> far_;
};

INSTANTIATE_TEST_SUITE_P(backends, stream_test, every_backend(), name_of_backend);

TEST_P(stream_test, read_gives_what_is_there_and_no_more_than_wanted) {
    run(send({"hello"}));
    EXPECT_EQ(run(some(near(), 3)), "hel");
    EXPECT_EQ(run(some(near(), 100)), "lo");
}

TEST_P(stream_test, read_waits_for_a_byte) {
    launch(send({"x"}));
    EXPECT_EQ(run(some(near(), 100)), "x");
}

TEST_P(stream_test, read_at_the_end_is_empty_each_time) {
    run(send_and_close({"last"}));
    EXPECT_EQ(run(some(near(), 100)), "last");
    EXPECT_EQ(run(some(near(), 100)), "");
    EXPECT_EQ(run(some(near(), 100)), "");
}

TEST_P(stream_test, read_takes_no_more_memory_than_the_pool_recycles) {
    run(send({"x"}));
    auto const read = [&]() -> task<std::size_t> {
        auto const got = co_await near().read(std::size_t(-1));
        co_return got.capacity();
    };
    EXPECT_LE(run(read()), pooled_memory_limit);
}

TEST_P(stream_test, read_fails_at_the_deadline_and_loses_nothing) {
    auto const read = [&]() -> task<std::error_code> {
        try {
            (void)co_await near().read(10, 5ms);
        } catch (std::system_error const& e) {
            co_return e.code();
        }
        co_return std::error_code();
    };
    EXPECT_EQ(run(read()), std::errc::timed_out);
    launch(send({"later"}));
    EXPECT_EQ(run(some(near(), 10)), "later");
}

TEST_P(stream_test, a_second_reader_is_told_that_there_is_one) {
    failure first;
    auto const wait = [&]() -> task<> { first = co_await failure_of_read(near()); };
    launch(wait());
    auto const second = [&]() -> task<std::error_code> {
        co_await aio::sleep(1ms);
        auto const f = co_await failure_of_read(near());
        near().close();
        co_return f.code;
    };
    EXPECT_EQ(run(second()), std::errc::device_or_resource_busy);
    run();
    EXPECT_EQ(first.code, std::errc::operation_canceled);
}

TEST_P(stream_test, read_to_the_end_gives_all_of_it) {
    std::string const big(300'000, 'b');
    launch(send_and_close({"a", big, "c"}));
    EXPECT_EQ(run(string_of(near().read())), "a" + big + "c");
    EXPECT_EQ(run(string_of(near().read())), "");
}

TEST_P(stream_test, read_to_the_end_of_more_than_the_limit_fails_and_keeps_what_came) {
    launch(send_and_close({std::string(100, 'x')}));
    auto const f = run(failure_of(near().read({}, 50)));
    EXPECT_EQ(f.code, error::limit_exceeded);
    EXPECT_EQ(run(string_of(near().read())).size(), 100u);
}

TEST_P(stream_test, read_exactly_gathers_parts) {
    launch(send({"ab", "cd", "efgh"}));
    EXPECT_EQ(run(string_of(near().read_exactly(5))), "abcde");
    EXPECT_EQ(run(string_of(near().read_exactly(3))), "fgh");
    EXPECT_EQ(run(string_of(near().read_exactly(0))), "");
}

TEST_P(stream_test, read_exactly_of_much_gathers_all) {
    std::string big(1'000'000, 0);
    for (std::size_t i = 0; i < big.size(); ++i) {
        big[i] = static_cast<char>(i * 7 + i / 251);
    }
    launch(send({big}));
    EXPECT_EQ(run(string_of(near().read_exactly(big.size() - 10))), big.substr(0, big.size() - 10));
    EXPECT_EQ(run(string_of(near().read_exactly(10))), big.substr(big.size() - 10));
}

TEST_P(stream_test, read_exactly_tells_how_much_came_when_the_peer_closes_in_the_middle) {
    launch(send_and_close({"abc", "de"}));
    auto const f = run(failure_of(near().read_exactly(10)));
    EXPECT_EQ(f.code, error::end_of_stream);
    EXPECT_EQ(f.moved, 5u);
    EXPECT_EQ(f.wanted, 10u);
    EXPECT_EQ(run(some(near(), 100)), "abcde") << "what came stays";
    EXPECT_EQ(run(some(near(), 100)), "");
}

TEST_P(stream_test, the_deadline_of_read_exactly_counts_for_all_parts) {
    // Each byte alone would come in time.
    launch(send(std::vector<std::string>(100, "x"), 10ms));
    auto const begin = now();
    auto const f = run(failure_of(near().read_exactly(100, 55ms)));
    EXPECT_EQ(f.code, std::errc::timed_out);
    ASSERT_TRUE(f.moved);
    EXPECT_LT(*f.moved, 30u);
    EXPECT_GE(now() - begin, 55ms);
    EXPECT_EQ(run(string_of(near().read_exactly(100))), std::string(100, 'x')) << "what came stays";
}

TEST_P(stream_test, a_stop_of_read_exactly_tells_how_much_came_and_keeps_it) {
    stop_source stop(executor());
    launch(send({"abc"}));
    auto const request = [&]() -> task<> {
        co_await aio::sleep(20ms);
        stop.request_stop();
    };
    launch(request());
    auto const f = run(failure_of(near().read_exactly(10)), stop.token());
    EXPECT_EQ(f.code, std::errc::operation_canceled);
    EXPECT_EQ(f.moved, 3u);
    EXPECT_EQ(run(some(near(), 10)), "abc");
}

TEST_P(stream_test, read_until_gives_each_message_of_a_chunk) {
    run(send({"one\ntwo\n\nthree"}));
    EXPECT_EQ(run(string_of(near().read_until("\n"))), "one\n");
    EXPECT_EQ(run(string_of(near().read_until("\n"))), "two\n");
    EXPECT_EQ(run(string_of(near().read_until("\n"))), "\n");
    launch(send({"!\n"}));
    EXPECT_EQ(run(string_of(near().read_until("\n"))), "three!\n");
}

TEST_P(stream_test, read_until_finds_a_separator_that_is_split) {
    launch(send({"head", "er\r", "\n", "\r", "\nbo", "dy"}));
    EXPECT_EQ(run(string_of(near().read_until("\r\n\r\n"))), "header\r\n\r\n");
    EXPECT_EQ(run(string_of(near().read_exactly(4))), "body");
}

TEST_P(stream_test, read_until_is_not_fooled_by_a_false_start) {
    launch(send({"aaa", "aab", "x"}));
    EXPECT_EQ(run(string_of(near().read_until("aab"))), "aaaaab");
    EXPECT_EQ(run(string_of(near().read_until("x"))), "x");
}

TEST_P(stream_test, read_until_stops_at_the_limit_and_keeps_what_came) {
    run(send({"0123456789\n"}));
    EXPECT_EQ(run(failure_of(near().read_until("\n", {}, 10))).code, error::limit_exceeded);
    EXPECT_EQ(run(failure_of(near().read_until("absent", {}, 5))).code, error::limit_exceeded);
    EXPECT_EQ(run(string_of(near().read_until("\n", {}, 11))), "0123456789\n");
}

TEST_P(stream_test, read_until_tells_how_much_came_before_the_end) {
    launch(send_and_close({"no separator"}));
    auto const f = run(failure_of(near().read_until("\n")));
    EXPECT_EQ(f.code, error::end_of_stream);
    EXPECT_EQ(f.moved, 12u);
    EXPECT_EQ(run(string_of(near().read())), "no separator");
}

TEST_P(stream_test, read_until_fails_at_the_deadline_and_keeps_what_came) {
    launch(send(std::vector<std::string>(100, "x"), 10ms));
    EXPECT_EQ(run(failure_of(near().read_until("\n", 55ms))).code, std::errc::timed_out);
    EXPECT_EQ(run(string_of(near().read_exactly(100))), std::string(100, 'x'));
}

TEST_P(stream_test, every_form_of_read_takes_what_the_others_left_in_order) {
    run(send_and_close({"line\nABCDEfew and the rest"}));
    EXPECT_EQ(run(string_of(near().read_until("\n"))), "line\n");
    EXPECT_EQ(run(string_of(near().read_exactly(5))), "ABCDE");
    EXPECT_EQ(run(some(near(), 3)), "few");
    EXPECT_EQ(run(some(near(), 0)), "");
    EXPECT_EQ(run(string_of(near().read_until("the"))), " and the");
    EXPECT_EQ(run(string_of(near().read())), " rest");
    EXPECT_EQ(run(some(near(), 10)), "");
}

TEST_P(stream_test, write_of_nothing_is_done_at_once) {
    auto const write = [&]() -> task<> { co_await near().write(const_buffer()); };
    run(write());
}

TEST_P(stream_test, write_moves_all_to_a_slow_reader_in_order) {
    open(stream_socket_handle::socket_pair().value());
    std::vector<std::byte> big(3'000'000);
    for (std::size_t i = 0; i < big.size(); ++i) {
        big[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
    bool written = false;
    auto const write = [&]() -> task<> {
        co_await near().write(const_buffer(big));
        written = true;
        near().write_eof();
    };
    std::size_t got = 0;
    bool same = true;
    auto const read = [&]() -> task<> {
        co_await aio::sleep(20ms);
        EXPECT_FALSE(written) << "a reader that doesn't read lets the writer wait";
        for (;;) {
            auto const part = co_await far().read(50'000);
            if (part.empty()) {
                break;
            }
            same = same && std::equal(part.begin(), part.end(),
                                      big.begin() + static_cast<std::ptrdiff_t>(got));
            got += part.size();
        }
    };
    launch(write());
    run(read());
    EXPECT_TRUE(written);
    EXPECT_EQ(got, big.size());
    EXPECT_TRUE(same);
}

TEST_P(stream_test, write_tells_how_much_was_moved_at_the_deadline) {
    open(stream_socket_handle::socket_pair().value());
    std::vector<std::byte> const big(8'000'000);
    auto const f = run(failure_of_write(near(), const_buffer(big), 10ms));
    EXPECT_EQ(f.code, std::errc::timed_out);
    ASSERT_TRUE(f.moved);
    EXPECT_GT(*f.moved, 0u);
    EXPECT_LT(*f.moved, big.size());
    EXPECT_EQ(f.wanted, big.size());
}

TEST_P(stream_test, the_deadline_of_write_counts_for_all_parts) {
    open(stream_socket_handle::socket_pair().value());
    // Each part alone would be taken in time.
    std::vector<std::byte> const big(50'000'000);
    stop_source stop(executor());
    auto const read = [&]() -> task<> {
        try {
            for (;;) {
                co_await aio::sleep(10ms);
                (void)co_await far().read(100'000);
            }
        } catch (std::system_error const&) {
        }
    };
    launch(read(), stop.token());
    auto const begin = now();
    auto const f = run(failure_of_write(near(), const_buffer(big), 60ms));
    EXPECT_EQ(f.code, std::errc::timed_out);
    EXPECT_GE(now() - begin, 60ms);
    EXPECT_LT(now() - begin, 4s);
    stop.request_stop();
    run();
}

TEST_P(stream_test, a_reset_in_the_middle_of_a_write_is_told_once) {
    std::vector<std::byte> const big(8'000'000);
    auto const reset = [&]() -> task<> {
        (void)co_await far().read(1000);
        far().socket().set_reset_on_close().value();
        far().close();
    };
    launch(reset());
    auto const f = run(failure_of_write(near(), const_buffer(big)));
    EXPECT_TRUE(f.code == std::errc::connection_reset || f.code == std::errc::broken_pipe)
        << f.code.message();
    ASSERT_TRUE(f.moved);
    EXPECT_LT(*f.moved, big.size());
    EXPECT_EQ(run(failure_of_write(near(), const_buffer(big))).code, std::errc::broken_pipe);
}

TEST_P(stream_test, a_reset_in_the_middle_of_a_read_is_an_error) {
    auto const reset = [&]() -> task<> {
        co_await aio::sleep(2ms);
        far().socket().set_reset_on_close().value();
        far().close();
    };
    launch(reset());
    EXPECT_EQ(run(failure_of_read(near())).code, std::errc::connection_reset);
}

TEST_P(stream_test, write_eof_ends_one_direction) {
    auto const answer = [&]() -> task<> {
        auto const all = co_await far().read();
        std::string const said = "got " + std::to_string(all.size());
        co_await far().write(text(said));
        far().close();
    };
    launch(answer());
    auto const ask = [&]() -> task<std::string> {
        co_await near().write(text("four"));
        near().write_eof();
        auto const all = co_await near().read();
        co_return std::string(all.view());
    };
    EXPECT_EQ(run(ask()), "got 4");
}

TEST_P(stream_test, close_cancels_what_is_in_flight) {
    std::vector<std::byte> const big(8'000'000);
    failure read;
    failure write;
    auto const wait_to_read = [&]() -> task<> { read = co_await failure_of_read(near()); };
    auto const wait_to_write = [&]() -> task<> {
        write = co_await failure_of_write(near(), const_buffer(big));
    };
    auto const close = [&]() -> task<> {
        co_await aio::sleep(5ms);
        near().close();
        EXPECT_FALSE(near().is_open());
    };
    launch(wait_to_read());
    launch(wait_to_write());
    launch(close());
    run();
    EXPECT_EQ(read.code, std::errc::operation_canceled);
    EXPECT_EQ(write.code, std::errc::operation_canceled);
    EXPECT_EQ(run(failure_of_read(near())).code, std::errc::bad_file_descriptor);
}

TEST_P(stream_test, knows_both_ends) {
    EXPECT_EQ(near().peer(), far().local());
    EXPECT_EQ(near().local(), far().peer());
    EXPECT_TRUE(near().local().is_loopback());
    EXPECT_NE(near().local().port(), 0);
}

TEST_P(stream_test, a_read_that_is_stopped_again_and_again_loses_no_byte) {
    constexpr std::size_t all = 20'000;
    std::mt19937 random(7);
    auto const write = [&]() -> task<> {
        std::size_t sent = 0;
        while (sent < all) {
            std::size_t const n = std::min<std::size_t>(1 + random() % 40, all - sent);
            std::vector<std::byte> part(n);
            for (auto& b : part) {
                b = static_cast<std::byte>(sent++ % 251);
            }
            co_await far().write(const_buffer(part));
            if (random() % 4 == 0) {
                co_await aio::sleep(std::chrono::microseconds(random() % 50));
            }
        }
        far().write_eof();
    };
    int stops = 0;
    auto const read = [&]() -> task<std::size_t> {
        std::size_t got = 0;
        for (;;) {
            stop_source stop(executor());
            auto const request = [](stop_source& s, int us) -> task<> {
                (void)co_await with_stop(s.token(), co_wait(std::chrono::microseconds(us)));
                s.request_stop();
            };
            auto const begun = random() % 3;
            if (begun == 0) {
                stop.request_stop();
            }
            bool ended = false;
            async_run(executor(), request(stop, static_cast<int>(random() % 30)), {},
                      [&](task_result<void>&) { ended = true; });
            bool over = false;
            try {
                auto const part = co_await with_stop(stop.token(), near().read(64));
                over = part.empty();
                for (auto const b : part) {
                    EXPECT_EQ(b, static_cast<std::byte>(got++ % 251));
                }
            } catch (std::system_error const& e) {
                EXPECT_EQ(e.code(), std::errc::operation_canceled);
                ++stops;
            }
            stop.request_stop();
            while (!ended) {
                co_await aio::sleep(1us);
            }
            if (over) {
                co_return got;
            }
        }
    };
    launch(write());
    EXPECT_EQ(run(read()), all);
    EXPECT_GT(stops, 10);
}

}  // namespace
}  // namespace plumb::test
