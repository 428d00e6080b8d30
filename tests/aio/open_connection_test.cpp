// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/open_connection.hpp>

#include <plumb/aio/sleep.hpp>
#include <plumb/io/async_accept.hpp>

#include "support/context.hpp"
#include "support/descriptors.hpp"
#include "support/silent_host.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <system_error>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// What a call failed with; nothing where it didn't.
struct failure {
    std::error_code code;
    std::string what;
};

class open_connection_test : public on_every_context {
protected:
    task<std::optional<failure>> attempt(endpoint peer, deadline limit = {}) {
        try {
            auto const s = co_await aio::open_connection(peer, limit);
            co_return std::nullopt;
        } catch (std::system_error const& e) {
            co_return failure{e.code(), e.what()};
        }
    }
};

INSTANTIATE_TEST_SUITE_P(backends, open_connection_test, every_backend(), name_of_backend);

TEST_P(open_connection_test, gives_a_stream_to_the_peer) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    listener.set_multiplexer(context().multiplexer());
    auto const where = listener.local().value();
    auto const serve = [&]() -> task<> {
        auto accepted = co_await listener.co_accept();
        aio::stream s(std::move(accepted.value()));
        co_await s.write(const_buffer("welcome", 7));
    };
    auto const visit = [&](std::string host) -> task<std::string> {
        auto s = co_await aio::open_connection(host, where.port());
        EXPECT_EQ(s.peer(), where);
        EXPECT_TRUE(s.local().is_loopback());
        auto const all = co_await s.read();
        co_return std::string(all.view());
    };
    launch(serve());
    EXPECT_EQ(run(visit("127.0.0.1")), "welcome");
    launch(serve());
    EXPECT_EQ(run(visit("localhost")), "welcome");
}

TEST_P(open_connection_test, refused_names_the_endpoint) {
    auto const where =
        listen_socket_handle::listen(endpoint::loopback_v4(0)).value().local().value();
    auto const failed = run(attempt(where));
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code, std::errc::connection_refused);
    EXPECT_NE(failed->what.find("cannot connect to " + where.to_string()), std::string::npos)
        << failed->what;
}

TEST_P(open_connection_test, a_silent_host_fails_at_the_deadline) {
    silent_host const host;
    auto const begin = now();
    auto const failed = run(attempt(host.where(), 30ms));
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code, std::errc::timed_out);
    EXPECT_NE(failed->what.find(host.where().to_string()), std::string::npos) << failed->what;
    EXPECT_GE(now() - begin, 30ms);
    EXPECT_LT(now() - begin, 20s);
}

TEST_P(open_connection_test, a_stop_closes_the_socket) {
    silent_host const host;
    auto const before = open_descriptors();
    stop_source stop(executor());
    auto const request = [&]() -> task<> {
        co_await aio::sleep(5ms);
        EXPECT_EQ(open_descriptors(), simulated() ? before : before + 1);
        stop.request_stop();
    };
    // A sleep and a connect have the context open what it needs.
    launch(request());
    auto const failed = run(attempt(host.where()), stop.token());
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code, std::errc::operation_canceled);
    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(open_connection_test, a_name_is_refused_by_name) {
    for (std::string const name : {"example.invalid", "", "1.2.3", "1.2.3.4.5", "[::1]", "::g"}) {
        try {
            (void)aio::open_connection(name, 80);
            ADD_FAILURE() << name;
        } catch (std::system_error const& e) {
            EXPECT_EQ(e.code(), error::not_an_address) << name;
            EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
        }
    }
}

}  // namespace
}  // namespace plumb::test
