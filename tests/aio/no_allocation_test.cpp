// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/stream.hpp>

#include <plumb/aio/open_connection.hpp>
#include <plumb/aio/server.hpp>
#include <plumb/exec/pooled_memory.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>

#include "support/allocations.hpp"
#include "support/context.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace plumb::test {
namespace {

/// A steady state allocates nothing: 10,000 messages there and back after some to warm up.
class no_allocation_test : public on_every_context {
protected:
    void SetUp() override {
        if (!pooled_memory_recycles()) {
            GTEST_SKIP() << "this build recycles nothing, so that a use after free is seen";
        }
        on_every_context::SetUp();
    }

    static constexpr int warm_up = 200;
    static constexpr int rounds = 10'000;
    static constexpr std::size_t size = 106;
};

INSTANTIATE_TEST_SUITE_P(backends, no_allocation_test, real_backends(), name_of_backend);

TEST_P(no_allocation_test, by_handles) {
    auto pair = tcp_pair();
    pair.first.set_multiplexer(context().multiplexer());
    pair.second.set_multiplexer(context().multiplexer());
    auto const echo = [&]() -> task<> {
        std::array<std::byte, 4096> memory;
        for (;;) {
            auto const got = co_await pair.second.co_read(buffer(memory));
            if (!got || got.bytes_transferred() == 0) {
                co_return;
            }
            (void)co_await pair.second.co_write(
                const_buffer(memory.data(), got.bytes_transferred()));
        }
    };
    auto const one = [&](std::array<std::byte, size>& message) -> task<std::size_t> {
        (void)co_await pair.first.co_write(const_buffer(message));
        std::size_t back = 0;
        while (back < size) {
            auto const got = co_await pair.first.co_read(buffer(message));
            if (!got || got.bytes_transferred() == 0) {
                break;
            }
            back += got.bytes_transferred();
        }
        co_return back;
    };
    auto const ask = [&]() -> task<std::uint64_t> {
        std::array<std::byte, size> message{};
        std::uint64_t before = 0;
        for (int i = 0; i < warm_up + rounds; ++i) {
            if (i == warm_up) {
                before = heap_allocations();
            }
            EXPECT_EQ(co_await one(message), size);
        }
        auto const made = heap_allocations() - before;
        (void)pair.first.close();
        co_return made;
    };
    launch(echo());
    EXPECT_EQ(run(ask()), 0u);
    run();
}

TEST_P(no_allocation_test, by_streams) {
    auto const echo = [](aio::stream s) -> task<> {
        for (;;) {
            auto const part = co_await s.read(4096);
            if (part.empty()) {
                co_return;
            }
            co_await s.write(const_buffer(part.data(), part.size()));
        }
    };
    auto const ask = [&]() -> task<std::uint64_t> {
        auto served = co_await aio::start_server(echo, endpoint::loopback_v4(0));
        async_run(executor(), served.serve_forever());
        auto s = co_await aio::open_connection(served.local());
        std::array<std::byte, size> const message{};
        std::uint64_t before = 0;
        for (int i = 0; i < warm_up + rounds; ++i) {
            if (i == warm_up) {
                before = heap_allocations();
            }
            co_await s.write(const_buffer(message));
            auto const back = co_await s.read_exactly(size);
            EXPECT_EQ(back.size(), size);
        }
        auto const made = heap_allocations() - before;
        served.close();
        s.close();
        co_return made;
    };
    EXPECT_EQ(run(ask()), 0u);
    run();
}

TEST_P(no_allocation_test, by_connections_that_come_and_go) {
    auto const echo = [](aio::stream s) -> task<> {
        auto const part = co_await s.read(4096);
        co_await s.write(const_buffer(part.data(), part.size()));
    };
    auto const one = [](endpoint where) -> task<> {
        auto s = co_await aio::open_connection(where);
        co_await s.write(const_buffer("x", 1));
        (void)co_await s.read_exactly(1);
        (void)co_await s.read();
    };
    auto const ask = [&]() -> task<std::uint64_t> {
        auto served = co_await aio::start_server(echo, endpoint::loopback_v4(0));
        async_run(executor(), served.serve_forever());
        std::uint64_t before = 0;
        for (int i = 0; i < warm_up + 500; ++i) {
            if (i == warm_up) {
                before = heap_allocations();
            }
            co_await one(served.local());
        }
        auto const made = heap_allocations() - before;
        served.close();
        co_return made;
    };
    EXPECT_EQ(run(ask()), 0u);
    run();
}

}  // namespace
}  // namespace plumb::test
