// SPDX-License-Identifier: Apache-2.0
#include "support/backend.hpp"

#include <plumb/sim/world.hpp>

#include "platform/seam.hpp"

#include <cstdlib>

namespace plumb::test {
namespace {

/// How many threads the multiplexers under test are made for: PLUMB_TEST_THREADS, else 1.
int threads() noexcept {
    char const* const told = std::getenv("PLUMB_TEST_THREADS");
    return told == nullptr ? 1 : std::atoi(told);
}

}  // namespace

class on_every_backend::world_while_running {
private:
    static sim::world::options as_linux() noexcept {
        sim::world::options o;
        o.reuse_numbers = true;
        return o;
    }
    sim::world world_{1, as_linux()};
};

on_every_backend::on_every_backend() = default;
on_every_backend::~on_every_backend() = default;

void on_every_backend::SetUp() {
    if (simulated()) {
        world_ = std::make_unique<world_while_running>();
    }
    auto made = io_multiplexer::make(GetParam(), threads());
    if (!made && GetParam() == multiplexer_kind::io_uring) {
        GTEST_SKIP() << "this system refuses io_uring: " << made.error().message();
    }
    ASSERT_TRUE(made) << made.error().message();
    multiplexer_ = std::move(*made);
    ASSERT_EQ(multiplexer_->kind(), GetParam());
}

std::unique_ptr<io_multiplexer> on_every_backend::another() const {
    return std::move(io_multiplexer::make(GetParam(), threads()).value());
}

void on_every_backend::settle() {
    for (int turns = 0; turns < 1000; ++turns) {
        auto const done = multiplexer_->try_run();
        ASSERT_TRUE(done) << done.error().message();
        if (*done <= 0) {
            return;
        }
    }
    FAIL() << "the multiplexer always has something to do";
}

std::chrono::steady_clock::time_point on_every_backend::now() noexcept {
    return std::chrono::steady_clock::time_point(
        std::chrono::nanoseconds(platform::os().steady_now()));
}

std::chrono::system_clock::time_point on_every_backend::system_now() noexcept {
    return std::chrono::system_clock::time_point(
        std::chrono::nanoseconds(platform::os().system_now()));
}

stream_socket_handle::pair on_every_backend::tcp_pair() {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    client.connect(listener.local().value(), patience).value();
    auto server = listener.accept(patience).value();
    client.set_multiplexer(multiplexer());
    server.set_multiplexer(multiplexer());
    return {std::move(client), std::move(server)};
}

stream_socket_handle::pair on_every_backend::socket_pair() {
    auto pair = stream_socket_handle::socket_pair().value();
    pair.first.set_multiplexer(multiplexer());
    pair.second.set_multiplexer(multiplexer());
    return pair;
}

pipe_handle::ends on_every_backend::pipe() {
    auto ends = pipe_handle::anonymous_pipe().value();
    ends.reader.set_multiplexer(multiplexer());
    ends.writer.set_multiplexer(multiplexer());
    return ends;
}

::testing::internal::ParamGenerator<multiplexer_kind> every_backend() {
    return ::testing::Values(multiplexer_kind::epoll, multiplexer_kind::io_uring,
                             multiplexer_kind::sim);
}

::testing::internal::ParamGenerator<multiplexer_kind> real_backends() {
    return ::testing::Values(multiplexer_kind::epoll, multiplexer_kind::io_uring);
}

std::string name_of_backend(::testing::TestParamInfo<multiplexer_kind> const& info) {
    return std::string(to_string(info.param));
}

std::string text_of(io_result<buffers> const& r) {
    std::string text;
    if (r) {
        for (buffer const b : *r) {
            text.append(reinterpret_cast<char const*>(b.data()), b.size());
        }
    }
    return text;
}

}  // namespace plumb::test
