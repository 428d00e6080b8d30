// SPDX-License-Identifier: Apache-2.0
#include "networking_ts/async_read.hpp"
#include "networking_ts/async_read_until.hpp"
#include "networking_ts/async_write.hpp"
#include "networking_ts/executor.hpp"
#include "networking_ts/io_context.hpp"
#include "networking_ts/ip/tcp.hpp"
#include "networking_ts/steady_timer.hpp"
#include "networking_ts/use_awaitable.hpp"
#include "networking_ts/use_future.hpp"

#include <plumb/exec/pooled_memory.hpp>
#include <plumb/exec/thread_pool.hpp>
#include <plumb/task/when_any.hpp>

#include "support/allocations.hpp"
#include "support/backend.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

namespace net = networking_ts;
using namespace std::chrono_literals;
using net::ip::tcp;

class networking_ts_test : public on_every_backend {
protected:
    std::optional<net::io_context> context;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            context.emplace(another());
        }
    }
    void TearDown() override { context.reset(); }

    static tcp::endpoint loopback(std::uint16_t port = 0) {
        return {net::ip::make_address("127.0.0.1"), port};
    }

    struct connection {
        tcp::socket client;
        tcp::socket server;
    };
    connection connected() {
        tcp::acceptor acceptor(*context, loopback());
        connection made{tcp::socket(*context), tcp::socket(*context)};
        acceptor.async_accept([&](std::error_code error, tcp::socket accepted) {
            EXPECT_FALSE(error);
            made.server = std::move(accepted);
        });
        made.client.async_connect(acceptor.local_endpoint(),
                                  [](std::error_code error) { EXPECT_FALSE(error); });
        run();
        return made;
    }

    /// Runs what there is to its end.
    void run() {
        context->run_for(patience);
        EXPECT_TRUE(context->stopped()) << "something never ended";
        context->restart();
    }
};

/// Some tests have several threads, which a simulated world hasn't.
class networking_ts_threads_test : public networking_ts_test {
protected:
    /// Runs the context on a thread of its own while it lives.
    class running {
    public:
        explicit running(net::io_context& c)
            : guard_(net::make_work_guard(c)), thread_([&c] { c.run(); }) {}
        running(running const&) = delete;
        running& operator=(running const&) = delete;
        ~running() {
            guard_.reset();
            thread_.join();
        }

    private:
        net::executor_work_guard<net::io_context::executor_type> guard_;
        std::thread thread_;
    };
};

INSTANTIATE_TEST_SUITE_P(backends, networking_ts_test, every_backend(), name_of_backend);
INSTANTIATE_TEST_SUITE_P(backends, networking_ts_threads_test, real_backends(), name_of_backend);

/// A connection of an echo server in the style of callbacks: keeps itself alive by what it waits for.
class echo_session : public std::enable_shared_from_this<echo_session> {
public:
    explicit echo_session(tcp::socket s) : socket_(std::move(s)) {}
    void start() { read(); }

private:
    void read() {
        socket_.async_read_some(net::buffer(room_),
                                [self = shared_from_this()](std::error_code error, std::size_t n) {
                                    if (!error) {
                                        self->write(n);
                                    }
                                });
    }
    void write(std::size_t n) {
        net::async_write(socket_, net::buffer(room_, n),
                         [self = shared_from_this()](std::error_code error, std::size_t) {
                             if (!error) {
                                 self->read();
                             }
                         });
    }

    tcp::socket socket_;
    std::array<char, 1024> room_;
};

std::string message(int i) {
    return "message " + std::to_string(i) + std::string(static_cast<std::size_t>(i), '.');
}

constexpr int messages = 200;

TEST_P(networking_ts_test, echoes_many_messages_through_callbacks) {
    auto [client, server] = connected();
    std::make_shared<echo_session>(std::move(server))->start();
    int answered = 0;
    std::string sent;
    std::string answer;
    std::function<void()> const next = [&] {
        sent = message(answered);
        net::async_write(client, net::buffer(sent), [&](std::error_code error, std::size_t n) {
            ASSERT_FALSE(error) << error.message();
            ASSERT_EQ(n, sent.size());
            answer.assign(n, '\0');
            net::async_read(client, net::buffer(answer), [&](std::error_code e, std::size_t m) {
                ASSERT_FALSE(e) << e.message();
                ASSERT_EQ(m, sent.size());
                ASSERT_EQ(answer, sent);
                if (++answered < messages) {
                    next();
                } else {
                    client.close();
                }
            });
        });
    };
    next();
    run();
    EXPECT_EQ(answered, messages);
}

plumb::task<> echo(tcp::socket peer) {
    std::array<char, 1024> room;
    for (;;) {
        std::size_t const n = co_await peer.async_read_some(net::buffer(room), net::use_awaitable);
        co_await net::async_write(peer, net::buffer(room, n), net::use_awaitable);
    }
}

plumb::task<> ask(tcp::socket server, int& answered) {
    for (int i = 0; i < messages; ++i) {
        std::string const sent = message(i);
        co_await net::async_write(server, net::buffer(sent), net::use_awaitable);
        std::string answer(sent.size(), '\0');
        std::size_t const n =
            co_await net::async_read(server, net::buffer(answer), net::use_awaitable);
        EXPECT_EQ(n, sent.size());
        EXPECT_EQ(answer, sent);
        ++answered;
    }
}

TEST_P(networking_ts_test, echoes_many_messages_through_awaitables) {
    auto [client, server] = connected();
    int answered = 0;
    net::co_spawn(*context, echo(std::move(server)), net::detached);
    net::co_spawn(*context, ask(std::move(client), answered), net::detached);
    run();
    EXPECT_EQ(answered, messages);
}

TEST_P(networking_ts_threads_test, echoes_many_messages_through_futures) {
    tcp::acceptor acceptor(*context, loopback());
    running const here(*context);
    tcp::socket client(*context);
    auto accepted = acceptor.async_accept(net::use_future);
    client.async_connect(acceptor.local_endpoint(), net::use_future).get();
    tcp::socket server = accepted.get();
    std::string received(1024, '\0');
    for (int i = 0; i < messages; ++i) {
        std::string const sent = message(i);
        auto const written = net::async_write(client, net::buffer(sent), net::use_future).get();
        ASSERT_EQ(written, sent.size());
        auto const n =
            net::async_read(server, net::buffer(received, sent.size()), net::use_future).get();
        ASSERT_EQ(received.substr(0, n), sent);
        auto back = net::async_read(client, net::buffer(received, n), net::use_future);
        ASSERT_EQ(net::async_write(server, net::buffer(sent), net::use_future).get(), n);
        ASSERT_EQ(back.get(), n);
    }
}

TEST_P(networking_ts_test, handlers_never_run_inside_the_initiating_function) {
    auto [client, server] = connected();
    char byte = 'x';
    std::string text;
    net::steady_timer timer(*context);
    int called = 0;
    bool initiating = false;
    auto const handler = [&](std::error_code, std::size_t = 0) {
        EXPECT_FALSE(initiating);
        ++called;
    };
    net::post(*context, [&] {
        initiating = true;
        net::async_write(client, net::buffer(&byte, 1), handler);
        net::async_read(server, net::buffer(&byte, 0), handler);
        timer.async_wait(handler);
        net::post(*context, [&] { handler({}); });
        net::defer(*context, [&] { handler({}); });
        initiating = false;
    });
    run();
    EXPECT_EQ(called, 5);
    // What is in the buffer already is no reason either.
    text = "line\nrest";
    net::post(*context, [&] {
        initiating = true;
        net::async_read_until(server, net::dynamic_buffer(text), '\n', handler);
        initiating = false;
    });
    run();
    EXPECT_EQ(called, 6);
    EXPECT_EQ(text, "line\nrest");
}

TEST_P(networking_ts_test, dispatch_calls_at_once_inside_and_posts_outside) {
    int called = 0;
    net::dispatch(*context, [&] {
        net::dispatch(*context, [&] { ++called; });
        EXPECT_EQ(called, 1);
        net::post(*context, [&] { ++called; });
        EXPECT_EQ(called, 1);
    });
    EXPECT_EQ(called, 0);
    EXPECT_EQ(context->run(), 2u);
    EXPECT_EQ(called, 2);
}

TEST_P(networking_ts_test, read_until_gives_line_after_line) {
    auto [client, server] = connected();
    std::string const text = "first\r\nsecond\r\n" + std::string(3000, 'x') + "\r\nrest";
    net::async_write(client, net::buffer(text),
                     [&](std::error_code, std::size_t) { client.close(); });
    std::string received;
    std::vector<std::string> lines;
    std::error_code last;
    std::function<void()> const next = [&] {
        net::async_read_until(server, net::dynamic_buffer(received), "\r\n",
                              [&](std::error_code error, std::size_t n) {
                                  if (error) {
                                      last = error;
                                      return;
                                  }
                                  lines.push_back(received.substr(0, n));
                                  net::dynamic_buffer(received).consume(n);
                                  next();
                              });
    };
    next();
    run();
    EXPECT_EQ(lines, (std::vector<std::string>{"first\r\n", "second\r\n",
                                               std::string(3000, 'x') + "\r\n"}));
    EXPECT_EQ(last, net::stream_errc::eof);
    EXPECT_EQ(received, "rest");
}

TEST_P(networking_ts_test, read_until_fails_where_the_buffer_is_full) {
    auto [client, server] = connected();
    std::string const text(100, 'x');
    net::async_write(client, net::buffer(text), [](std::error_code, std::size_t) {});
    std::string received;
    std::error_code error;
    net::async_read_until(server, net::dynamic_buffer(received, 10), '\n',
                          [&](std::error_code e, std::size_t n) {
                              error = e;
                              EXPECT_EQ(n, 0u);
                          });
    run();
    EXPECT_EQ(error, net::stream_errc::not_found);
    EXPECT_EQ(received, std::string(10, 'x'));
}

TEST_P(networking_ts_test, reads_and_writes_take_many_buffers_and_conditions) {
    auto [client, server] = connected();
    std::string const text = "0123456789abcdefghijklmnopqrstuvwxyz";
    std::vector<net::const_buffer> out;
    for (char const& c : text) {
        out.push_back(net::buffer(&c, 1));
    }
    std::size_t written = 0;
    net::async_write(client, out, [&](std::error_code error, std::size_t n) {
        EXPECT_FALSE(error);
        written = n;
    });
    std::array<char, 10> head{};
    std::string tail(100, '\0');
    std::array<net::mutable_buffer, 2> const in{net::buffer(head), net::buffer(tail)};
    std::size_t read = 0;
    net::async_read(
        server, in, net::transfer_exactly(12), [&](std::error_code error, std::size_t n) {
            EXPECT_FALSE(error);
            EXPECT_EQ(n, 12u);
            net::async_read(server, net::buffer(tail), net::transfer_at_least(text.size() - 12),
                            [&, n](std::error_code e, std::size_t m) {
                                EXPECT_FALSE(e);
                                read = n + m;
                            });
        });
    run();
    EXPECT_EQ(written, text.size());
    EXPECT_EQ(read, text.size());
    EXPECT_EQ(std::string(head.data(), head.size()), text.substr(0, 10));
    EXPECT_EQ(tail.substr(0, text.size() - 12), text.substr(12));
}

TEST_P(networking_ts_test, a_timer_completes_when_it_expires_and_not_before) {
    auto const start = io_multiplexer::steady_now();
    net::steady_timer timer(*context, 5ms);
    std::vector<int> order;
    net::steady_timer later(*context);
    later.expires_after(10ms);
    later.async_wait([&](std::error_code error) {
        EXPECT_FALSE(error);
        order.push_back(2);
    });
    timer.async_wait([&](std::error_code error) {
        EXPECT_FALSE(error);
        EXPECT_GE(io_multiplexer::steady_now(), start + 5ms);
        order.push_back(1);
    });
    run();
    EXPECT_EQ(order, (std::vector<int>{1, 2}));
    EXPECT_GE(io_multiplexer::steady_now(), start + 10ms);
}

TEST_P(networking_ts_test, a_cancelled_timer_completes_with_operation_canceled) {
    net::steady_timer timer(*context, 1h);
    std::vector<std::error_code> told;
    auto const note = [&](std::error_code error) { told.push_back(error); };
    timer.async_wait(note);
    timer.async_wait(note);
    timer.cancel();
    run();
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[0], std::errc::operation_canceled);
    EXPECT_EQ(told[1], std::errc::operation_canceled);
    // It can be used again, and another time of expiry cancels too.
    timer.async_wait(note);
    timer.expires_after(1ms);
    timer.async_wait(note);
    run();
    ASSERT_EQ(told.size(), 4u);
    EXPECT_EQ(told[2], std::errc::operation_canceled);
    EXPECT_FALSE(told[3]);
}

TEST_P(networking_ts_test, a_cancelled_socket_completes_with_operation_canceled) {
    auto [client, server] = connected();
    char byte = 0;
    std::error_code told;
    server.async_read_some(net::buffer(&byte, 1),
                           [&](std::error_code error, std::size_t) { told = error; });
    net::post(*context, [&, s = &server] { s->cancel(); });
    run();
    EXPECT_EQ(told, std::errc::operation_canceled);
    // The connection is as it was.
    std::size_t read = 0;
    net::async_write(client, net::buffer(static_cast<void const*>("x"), 1),
                     [](std::error_code, std::size_t) {});
    server.async_read_some(net::buffer(&byte, 1), [&](std::error_code error, std::size_t n) {
        EXPECT_FALSE(error);
        read = n;
    });
    run();
    EXPECT_EQ(read, 1u);
    EXPECT_EQ(byte, 'x');
}

TEST_P(networking_ts_test, closing_ends_what_is_in_flight) {
    auto [client, server] = connected();
    tcp::acceptor acceptor(*context, loopback());
    char byte = 0;
    std::vector<std::error_code> told;
    client.async_read_some(net::buffer(&byte, 1),
                           [&](std::error_code error, std::size_t) { told.push_back(error); });
    acceptor.async_accept([&](std::error_code error, tcp::socket accepted) {
        EXPECT_FALSE(accepted.is_open());
        told.push_back(error);
    });
    client.close();
    EXPECT_FALSE(client.is_open());
    acceptor.close();
    run();
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[0], std::errc::operation_canceled);
    EXPECT_EQ(told[1], std::errc::operation_canceled);
    // What is closed can't be read from.
    client.async_read_some(net::buffer(&byte, 1),
                           [&](std::error_code error, std::size_t) { told.push_back(error); });
    run();
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[2], std::errc::bad_file_descriptor);
}

TEST_P(networking_ts_test, the_end_of_the_stream_is_an_error) {
    auto [client, server] = connected();
    client.shutdown(tcp::socket::shutdown_send);
    std::array<char, 8> room;
    std::error_code some;
    std::error_code whole;
    server.async_read_some(net::buffer(room), [&](std::error_code error, std::size_t n) {
        some = error;
        EXPECT_EQ(n, 0u);
        net::async_read(server, net::buffer(room),
                        [&](std::error_code e, std::size_t) { whole = e; });
    });
    run();
    EXPECT_EQ(some, net::stream_errc::eof);
    EXPECT_EQ(whole, net::stream_errc::eof);
    // The other direction goes on.
    std::size_t back = 0;
    net::async_write(server, net::buffer("back", 4), [](std::error_code, std::size_t) {});
    net::async_read(client, net::buffer(room, 4), [&](std::error_code e, std::size_t n) {
        EXPECT_FALSE(e);
        back = n;
    });
    run();
    EXPECT_EQ(back, 4u);
}

TEST_P(networking_ts_test, what_was_read_before_the_end_is_told_with_it) {
    auto [client, server] = connected();
    net::async_write(client, net::buffer("abc", 3),
                     [&](std::error_code, std::size_t) { client.close(); });
    std::array<char, 8> room;
    std::optional<std::pair<std::error_code, std::size_t>> told;
    net::async_read(server, net::buffer(room),
                    [&](std::error_code error, std::size_t n) { told.emplace(error, n); });
    run();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->first, net::stream_errc::eof);
    EXPECT_EQ(told->second, 3u);
}

TEST_P(networking_ts_test, a_refused_connection_is_told) {
    tcp::endpoint nobody;
    {
        tcp::acceptor const acceptor(*context, loopback());
        nobody = acceptor.local_endpoint();
    }
    tcp::socket client(*context);
    std::error_code told;
    client.async_connect(nobody, [&](std::error_code error) { told = error; });
    run();
    EXPECT_EQ(told, std::errc::connection_refused);
}

TEST_P(networking_ts_test, a_second_read_of_a_socket_is_busy) {
    auto [client, server] = connected();
    std::array<char, 2> room;
    std::error_code second;
    server.async_read_some(net::buffer(room), [](std::error_code error, std::size_t) {
        EXPECT_EQ(error, std::errc::operation_canceled);
    });
    server.async_read_some(net::buffer(room), [&](std::error_code error, std::size_t) {
        second = error;
        server.cancel();
    });
    run();
    EXPECT_EQ(second, std::errc::device_or_resource_busy);
}

TEST_P(networking_ts_test, run_one_calls_one_handler_and_poll_what_is_ready) {
    std::vector<int> called;
    for (int i = 0; i < 4; ++i) {
        net::post(*context, [&called, i] { called.push_back(i); });
    }
    net::steady_timer timer(*context, 1h);
    timer.async_wait([&](std::error_code) { called.push_back(9); });
    EXPECT_EQ(context->run_one(), 1u);
    EXPECT_EQ(called.size(), 1u);
    EXPECT_EQ(context->poll_one(), 1u);
    EXPECT_EQ(called.size(), 2u);
    EXPECT_EQ(context->poll(), 2u);
    EXPECT_EQ(called, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_FALSE(context->stopped());
    EXPECT_EQ(context->run_for(1ms), 0u);
    EXPECT_FALSE(context->stopped());
}

TEST_P(networking_ts_test, stop_ends_run_before_the_next_handler_until_restart) {
    int called = 0;
    for (int i = 0; i < 3; ++i) {
        net::post(*context, [&] {
            ++called;
            context->stop();
        });
    }
    EXPECT_EQ(context->run(), 1u);
    EXPECT_TRUE(context->stopped());
    EXPECT_EQ(context->run(), 0u);
    EXPECT_EQ(called, 1);
    context->restart();
    EXPECT_EQ(context->run(), 1u);
    EXPECT_EQ(called, 2);
}

TEST_P(networking_ts_test, a_context_that_is_out_of_work_is_stopped) {
    EXPECT_EQ(context->run(), 0u);
    EXPECT_TRUE(context->stopped());
    int called = 0;
    net::post(*context, [&] { ++called; });
    EXPECT_EQ(context->run(), 0u);
    context->restart();
    EXPECT_EQ(context->run(), 1u);
    EXPECT_EQ(called, 1);
}

TEST_P(networking_ts_test, run_throws_what_a_handler_throws_and_can_go_on) {
    int called = 0;
    net::post(*context, [] { throw std::runtime_error("thrown by a handler"); });
    net::post(*context, [&] { ++called; });
    EXPECT_THROW(context->run(), std::runtime_error);
    EXPECT_EQ(called, 0);
    EXPECT_EQ(context->run(), 1u);
    EXPECT_EQ(called, 1);
}

TEST_P(networking_ts_test, each_exception_out_of_a_strand_is_thrown) {
    auto const strand = net::make_strand(*context);
    for (int i = 0; i < 2; ++i) {
        net::post(strand, [i] { throw i; });
    }
    for (int i = 0; i < 2; ++i) {
        try {
            context->run();
            ADD_FAILURE() << "nothing was thrown";
        } catch (int thrown) {
            EXPECT_EQ(thrown, i);
        }
    }
    EXPECT_EQ(context->run(), 0u);
}

TEST_P(networking_ts_test, a_strand_calls_in_order_and_its_handlers_are_inside) {
    auto const strand = net::make_strand(*context);
    std::vector<int> order;
    net::steady_timer timer(*context, 1ms);
    timer.async_wait(net::bind_executor(strand, [&](std::error_code error) {
        EXPECT_FALSE(error);
        EXPECT_TRUE(strand.running_in_this_thread());
        net::dispatch(strand, [&] { order.push_back(100); });
        EXPECT_EQ(order.back(), 100);
    }));
    for (int i = 0; i < 100; ++i) {
        net::post(strand, [&, i] {
            EXPECT_TRUE(strand.running_in_this_thread());
            order.push_back(i);
        });
    }
    run();
    ASSERT_EQ(order.size(), 101u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_P(networking_ts_test, each_step_of_a_composed_operation_runs_on_the_handlers_executor) {
    auto [client, server] = connected();
    auto const strand = net::make_strand(*context);
    std::string const text(100, 'x');
    std::string received;
    bool called = false;
    net::async_write(client, net::buffer(text),
                     [&](std::error_code, std::size_t) { client.close(); });
    net::async_read_until(server, net::dynamic_buffer(received), '\n',
                          net::bind_executor(strand, [&](std::error_code error, std::size_t) {
                              EXPECT_EQ(error, net::stream_errc::eof);
                              EXPECT_TRUE(strand.running_in_this_thread());
                              called = true;
                          }));
    run();
    EXPECT_TRUE(called);
    EXPECT_EQ(received, text);
}

TEST_P(networking_ts_threads_test, a_strand_never_calls_two_handlers_at_once) {
    plumb::thread_pool pool(4);
    auto const strand = net::make_strand(pool.get_executor());
    int unguarded = 0;
    std::atomic<int> inside = 0;
    auto const step = [&] {
        EXPECT_EQ(inside.fetch_add(1), 0);
        ++unguarded;
        inside.fetch_sub(1);
    };
    // From other threads, and as the handlers of timers of the context.
    std::vector<std::unique_ptr<net::steady_timer>> timers;
    for (int i = 0; i < 100; ++i) {
        timers.push_back(std::make_unique<net::steady_timer>(*context, 1ms));
        timers.back()->async_wait(net::bind_executor(strand, [&](std::error_code) { step(); }));
    }
    std::thread poster([&] {
        for (int i = 0; i < 1000; ++i) {
            net::post(strand, step);
        }
    });
    run();
    poster.join();
    pool.join();
    EXPECT_EQ(unguarded, 1100);
}

TEST_P(networking_ts_threads_test, operations_begin_and_end_from_other_threads) {
    // The futures outlive the context's thread: the thread sanitizer doesn't see how the last owner of an exception
    // is found, and so must not see it freed on another thread than the one that looked at it.
    std::vector<std::shared_future<std::size_t>> futures;
    std::vector<std::shared_future<void>> waits;
    auto const error_of = [](auto const& future) -> std::error_code {
        try {
            (void)future.get();
            return {};
        } catch (std::system_error const& e) {
            return e.code();
        }
    };
    tcp::acceptor acceptor(*context, loopback());
    running const here(*context);
    tcp::socket client(*context);
    auto accepted = acceptor.async_accept(net::use_future);
    client.async_connect(acceptor.local_endpoint(), net::use_future).get();
    tcp::socket server = accepted.get();
    char byte = 0;
    auto const read = [&] {
        return server.async_read_some(net::buffer(&byte, 1), net::use_future).share();
    };
    futures.push_back(read());
    server.cancel();
    EXPECT_EQ(error_of(futures.back()), std::errc::operation_canceled);
    futures.push_back(read());
    client.close();
    EXPECT_EQ(error_of(futures.back()), net::stream_errc::eof);
    net::steady_timer timer(*context, 1h);
    waits.push_back(timer.async_wait(net::use_future).share());
    timer.cancel();
    EXPECT_EQ(error_of(waits.back()), std::errc::operation_canceled);
    EXPECT_FALSE(error_of(net::post(*context, net::use_future).share()));
}

TEST_P(networking_ts_threads_test, stop_ends_a_run_on_another_thread) {
    auto const guard = net::make_work_guard(*context);
    std::promise<void> began;
    net::post(*context, [&] { began.set_value(); });
    std::thread runner([&] { context->run(); });
    began.get_future().wait();
    context->stop();
    runner.join();
    EXPECT_TRUE(context->stopped());
}

TEST_P(networking_ts_threads_test, a_handler_keeps_the_context_of_its_executor_running) {
    net::io_context other(another());
    bool called = false;
    net::steady_timer timer(*context, 5ms);
    timer.async_wait(net::bind_executor(other.get_executor(), [&](std::error_code error) {
        EXPECT_FALSE(error);
        EXPECT_TRUE(other.get_executor().running_in_this_thread());
        called = true;
    }));
    std::thread runner([&] { other.run(); });
    run();
    runner.join();
    EXPECT_TRUE(called);
}

TEST_P(networking_ts_test, an_awaited_operation_throws_its_error) {
    std::optional<std::error_code> thrown;
    auto const body = [](net::io_context& c, std::optional<std::error_code>& e) -> plumb::task<> {
        net::steady_timer timer(c, 1h);
        net::post(c, [&] { timer.cancel(); });
        try {
            co_await timer.async_wait(net::use_awaitable);
        } catch (std::system_error const& error) {
            e = error.code();
        }
    };
    net::co_spawn(*context, body(*context, thrown), net::detached);
    run();
    ASSERT_TRUE(thrown);
    EXPECT_EQ(*thrown, std::errc::operation_canceled);
}

plumb::task<int> wait(net::io_context& c, std::chrono::milliseconds time) {
    net::steady_timer timer(c, time);
    co_await timer.async_wait(net::use_awaitable);
    co_return static_cast<int>(time.count());
}

TEST_P(networking_ts_test, a_stop_request_of_plumb_cancels_what_is_awaited) {
    std::size_t first = 9;
    auto const body = [](net::io_context& c, std::size_t& won) -> plumb::task<> {
        auto const ended = co_await plumb::when_any(wait(c, 3'600'000ms), wait(c, 1ms));
        won = ended.index;
    };
    net::co_spawn(*context, body(*context, first), net::detached);
    run();
    EXPECT_EQ(first, 1u);
}

TEST_P(networking_ts_test, a_coroutine_on_a_strand_resumes_inside_of_it) {
    auto const strand = net::make_strand(*context);
    bool inside = false;
    auto const body = [](net::io_context& c, decltype(strand)& s, bool& is) -> plumb::task<> {
        (void)co_await wait(c, 1ms);
        is = s.running_in_this_thread();
    };
    net::co_spawn(strand, body(*context, strand, inside), net::detached);
    run();
    EXPECT_TRUE(inside);
}

TEST_P(networking_ts_test, destroying_a_coroutine_that_waits_destroys_its_operation) {
    auto [client, server] = connected();
    auto const executor = context->get_executor();
    plumb::io_env const env{executor, {}};
    auto const body = [](tcp::socket& s) -> plumb::task<> {
        std::array<char, 8> room;
        co_await net::async_read(s, net::buffer(room), net::use_awaitable);
        ADD_FAILURE();
    };
    std::optional<plumb::task<>> waiting(body(server));
    net::post(*context, [&] {
        auto const coroutine = waiting->coroutine();
        coroutine.promise().launch(std::noop_coroutine(), env);
        coroutine.resume();
        net::post(*context, [&] { waiting.reset(); });
    });
    run();
    EXPECT_FALSE(waiting);
    // Nothing waits for the socket any more.
    char byte = 0;
    net::async_write(client, net::buffer("x", 1), [](std::error_code, std::size_t) {});
    net::async_read(server, net::buffer(&byte, 1),
                    [](std::error_code error, std::size_t) { EXPECT_FALSE(error); });
    run();
    EXPECT_EQ(byte, 'x');
}

TEST_P(networking_ts_test, a_destroyed_context_destroys_its_handlers_uncalled) {
    auto const alive = std::make_shared<int>(0);
    auto [client, server] = connected();
    auto timer = std::make_unique<net::steady_timer>(*context, 1h);
    auto& waiting = *timer;
    waiting.async_wait([owned = std::move(timer), alive](std::error_code) { ADD_FAILURE(); });
    std::make_shared<echo_session>(std::move(server))->start();
    auto const body = [](tcp::socket s, std::shared_ptr<int>) -> plumb::task<> {
        char byte = 0;
        co_await net::async_read(s, net::buffer(&byte, 1), net::use_awaitable);
        ADD_FAILURE();
    };
    net::co_spawn(*context, body(std::move(client), alive), net::detached);
    context->poll();
    net::post(*context, [alive] { ADD_FAILURE(); });
    net::post(net::make_strand(*context), [alive] { ADD_FAILURE(); });
    EXPECT_EQ(alive.use_count(), 5);
    context.reset();
    EXPECT_EQ(alive.use_count(), 1);
}

TEST_P(networking_ts_test, a_steady_state_allocates_nothing_from_the_heap) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build recycles no memory";
    }
    auto [client, server] = connected();
    std::make_shared<echo_session>(std::move(server))->start();
    struct asking {
        tcp::socket& s;
        char byte = 'x';
        int left = 200;
        std::uint64_t warm = 0;
        std::uint64_t done = 0;

        void write() {
            net::async_write(s, net::buffer(&byte, 1), [this](std::error_code, std::size_t) {
                net::async_read(s, net::buffer(&byte, 1),
                                [this](std::error_code, std::size_t) { read(); });
            });
        }
        void read() {
            warm = left == 100 ? heap_allocations() : warm;
            if (--left == 0) {
                done = heap_allocations();
                s.close();
            } else {
                write();
            }
        }
    };
    asking a{client};
    a.write();
    run();
    ASSERT_EQ(a.left, 0);
    if (!simulated()) {
        EXPECT_EQ(a.done, a.warm);
    }
}

}  // namespace
}  // namespace plumb::test
