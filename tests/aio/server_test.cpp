// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/server.hpp>

#include <plumb/aio/open_connection.hpp>
#include <plumb/aio/run.hpp>
#include <plumb/aio/sleep.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/sim/world.hpp>

#include "support/context.hpp"
#include "support/descriptors.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

const_buffer text(std::string_view s) { return const_buffer(s.data(), s.size()); }

task<> echo(aio::stream s) {
    for (;;) {
        auto const part = co_await s.read(4096);
        if (part.empty()) {
            co_return;
        }
        co_await s.write(const_buffer(part.data(), part.size()));
    }
}

task<std::string> ask(endpoint where, std::string question) {
    auto s = co_await aio::open_connection(where);
    co_await s.write(text(question));
    s.write_eof();
    auto const answer = co_await s.read();
    co_return std::string(answer.view());
}

class server_test : public on_every_context {
protected:
    /// Begins to listen, and serves beside the test.
    void serve(aio::server::handler h, aio::server::options o = {}) {
        served_.emplace(start(std::move(h), std::move(o)));
        begin_to_serve();
    }
    aio::server start(aio::server::handler h, aio::server::options o = {}) {
        return run(aio::start_server(std::move(h), endpoint::loopback_v4(0), std::move(o)));
    }
    void begin_to_serve() {
        stop_.emplace(executor());
        async_run(executor(), served_->serve_forever(), stop_->token(),
                  [this](task_result<void>& r) {
                      ended_ = true;
                      failure_ = r.exception();
                  });
    }
    /// Closes, and runs until all has ended.
    void finish() {
        served_->close();
        run();
        EXPECT_TRUE(ended_);
        EXPECT_EQ(failure_, nullptr);
    }
    void TearDown() override {
        end_context();
        stop_.reset();
        served_.reset();
        on_every_context::TearDown();
    }

    aio::server& served() { return *served_; }
    void drop_server() { served_.reset(); }
    stop_source& stop() { return *stop_; }
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    endpoint where() { return served_->local(); }

    using on_every_context::run;

private:
    std::optional<aio::server> served_;
    std::optional<stop_source> stop_;
    std::exception_ptr failure_;
    bool ended_ = false;
};

INSTANTIATE_TEST_SUITE_P(backends, server_test, every_backend(), name_of_backend);

TEST_P(server_test, serves_many_clients_at_once) {
    serve(&echo);
    constexpr int clients = 50;
    int good = 0;
    auto const client = [&](int id) -> task<> {
        auto s = co_await aio::open_connection(where());
        for (int i = 0; i < 20; ++i) {
            std::string const message = std::to_string(id) + ":" + std::to_string(i);
            co_await s.write(text(message));
            auto const back = co_await s.read_exactly(message.size());
            good += back == message ? 1 : 0;
        }
    };
    int left = clients;
    for (int i = 0; i < clients; ++i) {
        async_run(executor(), client(i), {}, [&](task_result<void>& r) {
            EXPECT_NO_THROW(r.take());
            if (--left == 0) {
                served().close();
            }
        });
    }
    run();
    EXPECT_TRUE(ended());
    EXPECT_EQ(good, clients * 20);
    EXPECT_EQ(served().count().accepted, static_cast<std::uint64_t>(clients));
    EXPECT_EQ(served().count().failed, 0u);
    EXPECT_EQ(served().count().open, 0u);
}

TEST_P(server_test, a_port_in_use_names_the_endpoint) {
    auto const taken = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto const at = taken.local().value();
    auto const attempt = [&]() -> task<std::string> {
        try {
            (void)co_await aio::start_server(&echo, at);
        } catch (std::system_error const& e) {
            EXPECT_EQ(e.code(), std::errc::address_in_use);
            co_return e.what();
        }
        co_return "";
    };
    auto const what = run(attempt());
    EXPECT_NE(what.find("cannot listen on " + at.to_string()), std::string::npos) << what;
}

TEST_P(server_test, a_bad_address_is_refused_by_name) {
    EXPECT_THROW((void)aio::start_server(&echo, "nowhere", 0), std::system_error);
}

TEST_P(server_test, an_exception_ends_its_connection_and_is_reported_and_the_server_goes_on) {
    std::vector<std::string> reports;
    aio::server::options o;
    o.on_error = [&](std::exception_ptr const& e, endpoint const& peer) {
        EXPECT_TRUE(peer.is_loopback());
        try {
            std::rethrow_exception(e);
        } catch (std::exception const& x) {
            reports.emplace_back(x.what());
        }
    };
    auto const handle = [](aio::stream s) -> task<> {
        auto const question = co_await s.read();
        if (question == "fail") {
            throw std::runtime_error("as asked");
        }
        co_await s.write(const_buffer(question.data(), question.size()));
    };
    serve(handle, o);
    EXPECT_EQ(run(ask(where(), "fail")), "");
    EXPECT_EQ(run(ask(where(), "echo")), "echo");
    EXPECT_EQ(run(ask(where(), "fail")), "");
    finish();
    EXPECT_EQ(reports, (std::vector<std::string>{"as asked", "as asked"}));
    EXPECT_EQ(served().count().failed, 2u);
    EXPECT_EQ(served().count().accepted, 3u);
}

TEST_P(server_test, a_handler_that_throws_before_it_is_a_coroutine_ends_its_connection_too) {
    int reports = 0;
    aio::server::options o;
    o.on_error = [&](std::exception_ptr const&, endpoint const&) { ++reports; };
    int calls = 0;
    serve(
        [&](aio::stream s) -> task<> {
            if (++calls == 1) {
                throw std::runtime_error("at once");
            }
            return echo(std::move(s));
        },
        o);
    // The connection may be reset, because its question was not read.
    auto const first = [&]() -> task<std::string> {
        try {
            co_return co_await ask(where(), "x");
        } catch (std::system_error const&) {
        }
        co_return "";
    };
    EXPECT_EQ(run(first()), "");
    EXPECT_EQ(run(ask(where(), "y")), "y");
    finish();
    EXPECT_EQ(reports, 1);
}

TEST_P(server_test, holds_connections_over_the_limit_back_and_lets_them_in_later) {
    int now_open = 0;
    int most_open = 0;
    aio::server::options o;
    o.max_connections = 2;
    auto const handle = [&](aio::stream s) -> task<> {
        most_open = std::max(most_open, ++now_open);
        co_await aio::sleep(2ms);
        co_await echo(std::move(s));
        --now_open;
    };
    serve(handle, o);
    int answered = 0;
    auto const client = [&]() -> task<> {
        answered += co_await ask(where(), "hello") == "hello" ? 1 : 0;
    };
    int left = 9;
    for (int i = 0; i < 9; ++i) {
        async_run(executor(), client(), {}, [&](task_result<void>& r) {
            EXPECT_NO_THROW(r.take());
            if (--left == 0) {
                served().close();
            }
        });
    }
    run();
    EXPECT_TRUE(ended());
    EXPECT_EQ(answered, 9);
    EXPECT_EQ(most_open, 2);
}

TEST_P(server_test, close_lets_handlers_finish) {
    std::string said;
    auto const handle = [&](aio::stream s) -> task<> {
        co_await aio::sleep(20ms);
        co_await s.write(text("finished"));
    };
    serve(handle);
    auto const client = [&]() -> task<> {
        auto s = co_await aio::open_connection(where());
        co_await aio::sleep(5ms);
        served().close();
        auto const all = co_await s.read();
        said = all.view();
    };
    launch(client());
    run();
    EXPECT_EQ(said, "finished");
    EXPECT_TRUE(ended());
}

TEST_P(server_test, close_refuses_later_clients) {
    serve(&echo);
    auto const at = where();
    finish();
    auto const attempt = [&]() -> task<std::error_code> {
        try {
            (void)co_await aio::open_connection(at);
        } catch (std::system_error const& e) {
            co_return e.code();
        }
        co_return std::error_code();
    };
    EXPECT_EQ(run(attempt()), std::errc::connection_refused);
}

TEST_P(server_test, a_stop_stops_the_handlers_and_reports_none_of_them) {
    int reports = 0;
    aio::server::options o;
    o.on_error = [&](std::exception_ptr const&, endpoint const&) { ++reports; };
    serve(&echo, o);
    auto const client = [&]() -> task<std::string> {
        auto s = co_await aio::open_connection(where());
        co_await s.write(text("x"));
        (void)co_await s.read_exactly(1);
        stop().request_stop();
        auto const end = co_await s.read();
        co_return std::string(end.view());
    };
    EXPECT_EQ(run(client()), "");
    run();
    EXPECT_TRUE(ended());
    EXPECT_EQ(reports, 0);
    EXPECT_EQ(served().count().failed, 0u);
    EXPECT_EQ(served().count().open, 0u);
}

TEST_P(server_test, a_stop_from_before_serves_nobody) {
    auto s = start(&echo);
    stop_source early(executor());
    early.request_stop();
    run();
    run(s.serve_forever(), early.token());
    EXPECT_EQ(s.count().accepted, 0u);
}

TEST_P(server_test, a_stop_ends_one_that_is_full) {
    aio::server::options o;
    o.max_connections = 1;
    serve(&echo, o);
    auto const client = [&]() -> task<> {
        auto a = co_await aio::open_connection(where());
        co_await aio::sleep(5ms);
        stop().request_stop();
        (void)co_await a.read();
    };
    launch(client());
    run();
    EXPECT_TRUE(ended());
}

TEST_P(server_test, stop_handlers_leaves_the_server_open) {
    serve(&echo);
    auto const client = [&]() -> task<> {
        auto s = co_await aio::open_connection(where());
        co_await s.write(text("x"));
        (void)co_await s.read_exactly(1);
        served().stop_handlers();
        EXPECT_EQ(co_await s.read(), "");
    };
    run(client());
    served().close();
    run();
    EXPECT_TRUE(ended());
}

TEST_P(server_test, two_servers_share_a_loop) {
    serve(&echo);
    auto other = start([](aio::stream s) -> task<> { co_await s.write(text("other")); });
    launch(other.serve_forever());
    EXPECT_EQ(run(ask(where(), "one")), "one");
    EXPECT_EQ(run(ask(other.local(), "")), "other");
    other.close();
    finish();
}

TEST_P(server_test, ends_with_its_context_while_it_serves) {
    int alive = 0;
    auto const handle = [&](aio::stream s) -> task<> {
        counted const c(alive);
        co_await echo(std::move(s));
    };
    serve(handle);
    std::vector<stream_socket_handle> clients;
    auto const connect = [&]() -> task<> {
        for (int i = 0; i < 5; ++i) {
            auto s = co_await aio::open_connection(where());
            co_await s.write(text("x"));
            (void)co_await s.read_exactly(1);
            clients.push_back(std::move(s.socket()));
        }
    };
    run(connect());
    EXPECT_EQ(alive, 5);
    EXPECT_EQ(served().count().open, 5u);
    end_context();
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(served().count().open, 0u);
    served().stop_handlers();  // nobody is there any more
    served().close();
}

TEST_P(server_test, ends_with_its_context_in_the_coroutine_that_owns_it) {
    int alive = 0;
    endpoint at;
    auto const handle = [&](aio::stream s) -> task<> {
        counted const c(alive);
        co_await echo(std::move(s));
    };
    auto const own = [&]() -> task<> {
        auto s = co_await aio::start_server(handle, endpoint::loopback_v4(0));
        at = s.local();
        co_await s.serve_forever();
    };
    launch(own());
    std::optional<aio::stream> kept;
    auto const connect = [&]() -> task<> {
        co_await aio::sleep(1ms);
        kept.emplace(co_await aio::open_connection(at));
        co_await kept->write(text("x"));
        (void)co_await kept->read_exactly(1);
    };
    run(connect());
    EXPECT_EQ(alive, 1);
    end_context();
    EXPECT_EQ(alive, 0);
}

TEST_P(server_test, ends_with_its_context_just_after_it_was_closed) {
    aio::server::options o;
    o.max_connections = 1;
    serve(&echo, o);
    std::optional<aio::stream> kept;
    auto const connect = [&]() -> task<> {
        kept.emplace(co_await aio::open_connection(where()));
        co_await kept->write(text("x"));
        (void)co_await kept->read_exactly(1);
    };
    run(connect());
    served().close();  // what tells the server so is on its way when the context ends
    end_context();
}

TEST_P(server_test, destroyed_while_it_serves_ends_by_itself) {
    serve(&echo);
    auto const client = [&]() -> task<std::string> {
        auto s = co_await aio::open_connection(where());
        co_await s.write(text("x"));
        (void)co_await s.read_exactly(1);
        drop_server();
        auto const end = co_await s.read();
        co_return std::string(end.view());
    };
    EXPECT_EQ(run(client()), "");
    run();
    EXPECT_TRUE(ended());
}

TEST_P(server_test, destroyed_before_it_served_closes_its_port) {
    std::optional<aio::server> s(start(&echo));
    auto const at = s->local();
    s.reset();
    EXPECT_TRUE(listen_socket_handle::listen(at));
}

TEST_P(server_test, can_be_moved_while_it_serves) {
    serve(&echo);
    EXPECT_EQ(run(ask(where(), "one")), "one");
    aio::server moved = std::move(served());
    EXPECT_EQ(run(ask(moved.local(), "two")), "two");
    moved.close();
    run();
    EXPECT_TRUE(ended());
}

TEST_P(server_test, served_twice_is_a_bug_that_is_told) {
    serve(&echo);
    EXPECT_DEATH(run(served().serve_forever()), "plumb: server::serve_forever was called twice");
    finish();
}

class server_of_descriptors_test : public server_test {};

INSTANTIATE_TEST_SUITE_P(backends, server_of_descriptors_test, real_backends(), name_of_backend);

TEST_P(server_of_descriptors_test, a_full_descriptor_table_makes_it_pause_and_then_go_on) {
    serve(&echo);
    auto const client = [&]() -> task<std::string> {
        // The first brings everything that the context opens at its first use.
        (void)co_await ask(where(), "warm");
        auto socket = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
        std::uint64_t turns = 0;
        {
            full_descriptor_table const full;
            (co_await socket.co_connect(where())).value();
            turns = context().multiplexer().counters().turns;
            co_await aio::sleep(200ms);
            turns = context().multiplexer().counters().turns - turns;
        }
        EXPECT_LT(turns, 60u) << "it spins";
        aio::stream s(std::move(socket));
        co_await s.write(text("late"));
        s.write_eof();
        auto const answer = co_await s.read();
        co_return std::string(answer.view());
    };
    EXPECT_EQ(run(client()), "late");
    finish();
    EXPECT_EQ(served().count().failed, 0u);
}

TEST_P(server_of_descriptors_test, leaves_no_descriptor_open) {
    auto const before = open_descriptors();
    serve(&echo);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(run(ask(where(), "x")), "x");
    }
    finish();
    drop_server();
    EXPECT_LE(open_descriptors(), before + 1) << "the context's own may stay";
}

/// A thousand clients of an echo server in a world of short reads. @return the fingerprint of the run
std::uint64_t thousand_clients(std::uint64_t seed) {
    sim::world::options o;
    o.short_transfers = true;
    o.most_latency = 10ms;
    sim::world world(seed, o);
    constexpr int clients = 1000;
    int good = 0;
    {
        io_context context;
        auto const client = [&](endpoint at, int id) -> task<> {
            auto s = co_await aio::open_connection(at);
            for (int i = 0; i < 3; ++i) {
                std::string const message(static_cast<std::size_t>(1 + (id * 37 + i * 101) % 300),
                                          'a' + id % 26);
                co_await s.write(text(message));
                auto const back = co_await s.read_exactly(message.size());
                good += back == message ? 1 : 0;
            }
        };
        auto const main = [&]() -> task<> {
            auto s = co_await aio::start_server(&echo, endpoint::loopback_v4(0));
            int left = clients;
            for (int i = 0; i < clients; ++i) {
                async_run(context.get_executor(), client(s.local(), i), {},
                          [&](task_result<void>& r) {
                              EXPECT_NO_THROW(r.take());
                              if (--left == 0) {
                                  s.close();
                              }
                          });
            }
            co_await s.serve_forever();
            EXPECT_EQ(s.count().accepted, static_cast<std::uint64_t>(clients));
        };
        aio::run(context, main());
    }
    EXPECT_EQ(good, clients * 3);
    return world.fingerprint();
}

TEST(simulated_server_test, serves_a_thousand_clients_the_same_way_for_the_same_seed) {
    auto const first = thousand_clients(1);
    EXPECT_EQ(thousand_clients(1), first);
    EXPECT_NE(thousand_clients(2), first);
}

}  // namespace
}  // namespace plumb::test
