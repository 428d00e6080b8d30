// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_awaitable.hpp>

#include <plumb/exec/work_queue.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_context.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"

#include <array>
#include <coroutine>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// The least coroutine that has an environment: started by hand, owned by the test.
class program {
public:
    class promise_type {
    public:
        template <class... Rest>
        explicit promise_type(io_env const& env, Rest const&...) noexcept : env_(&env) {}
        template <class Lambda, class... Rest>
        promise_type(Lambda const&, io_env const& env, Rest const&...) noexcept : env_(&env) {}

        program get_return_object() noexcept { return program(handle_type::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }

        template <class Sender>
        auto await_transform(io_awaitable<Sender>&& io) noexcept {
            struct with_env {
                io_awaitable<Sender>& io;
                io_env const& env;
                bool await_ready() const noexcept { return io.await_ready(); }
                bool await_suspend(std::coroutine_handle<> h) noexcept {
                    return io.await_suspend(h, env);
                }
                auto await_resume() noexcept { return io.await_resume(); }
            };
            return with_env{io, *env_};
        }

    private:
        io_env const* env_;
    };
    using handle_type = std::coroutine_handle<promise_type>;

    program(program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~program() {
        if (handle_) {
            handle_.destroy();
        }
    }
    void start() { handle_.resume(); }
    [[nodiscard]] bool ended() const noexcept { return handle_.done(); }

private:
    explicit program(handle_type h) noexcept : handle_(h) {}
    handle_type handle_;
};

/// An executor that runs when the test says so.
struct by_hand {
    work_queue* place;

    struct resume final : work {
        explicit resume(std::coroutine_handle<> h)
            : work([](work& w) noexcept {
                  std::unique_ptr<resume> const self(static_cast<resume*>(&w));
                  self->waiting.resume();
              }),
              waiting(h) {}
        std::coroutine_handle<> waiting;
    };
    std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
        place->push(*new resume(h));
        return std::noop_coroutine();
    }
    void post(work* w) const { place->push(*w); }
    friend bool operator==(by_hand const&, by_hand const&) = default;
};

class io_awaitable_test : public on_every_backend {
protected:
    std::unique_ptr<io_context> context;
    std::optional<stop_source> stop;
    io_env env;
    stream_socket_handle::pair tcp;
    std::array<std::byte, 64> memory{};
    std::string seen;

    void SetUp() override {
        on_every_backend::SetUp();
        if (IsSkipped() || HasFatalFailure()) {
            return;
        }
        context = std::make_unique<io_context>(another());
        stop.emplace(context->get_executor());
        env = {context->get_executor(), stop->token()};
        tcp = tcp_pair();
        tcp.first.set_multiplexer(context->multiplexer());
        tcp.second.set_multiplexer(context->multiplexer());
    }
    void TearDown() override {
        tcp = {};
        stop.reset();
        context.reset();
    }
    /// Starts it inside the context and runs that until nothing is left.
    void run(program& p) {
        ASSERT_TRUE(context->multiplexer().post([&] { p.start(); }));
        ASSERT_TRUE(context->run());
    }
    static std::string told(io_result<buffers> const& r) {
        return r ? text_of(r) : r.error().message();
    }
    inline static std::string const canceled =
        std::make_error_code(std::errc::operation_canceled).message();
};

INSTANTIATE_TEST_SUITE_P(backends, io_awaitable_test, every_backend(), name_of_backend);

program echo_once(io_env const&, io_handle& h, std::span<std::byte> memory) {
    auto const r = co_await h.co_read(buffer(memory));
    EXPECT_TRUE(r);
    (void)co_await h.co_write(const_buffers(*r));
}

program read_into(io_env const&, io_handle& h, std::span<std::byte> memory, std::string& seen,
                  deadline limit = {}) {
    auto const r = co_await h.co_read(buffer(memory), limit);
    seen = r ? text_of(r) : r.error().message();
}

TEST_P(io_awaitable_test, reads_and_writes) {
    ASSERT_TRUE(tcp.first.write(bytes_of("hello"), patience));
    auto p = echo_once(env, tcp.second, memory);
    run(p);
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(text_of(tcp.first.read(buffer(memory), patience)), "hello");
}

TEST_P(io_awaitable_test, connects_and_accepts) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    listener.set_multiplexer(context->multiplexer());
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    client.set_multiplexer(context->multiplexer());
    std::optional<endpoint> peer;
    auto const accepting = [](io_env const&, listen_socket_handle& l,
                              std::optional<endpoint>& e) -> program {
        auto const s = co_await l.co_accept();
        EXPECT_TRUE(s);
        e = s->peer().value();
    };
    auto const connecting = [](io_env const&, stream_socket_handle& c, endpoint where) -> program {
        auto const done = co_await c.co_connect(where);
        EXPECT_TRUE(done);
    };
    auto a = accepting(env, listener, peer);
    auto c = connecting(env, client, listener.local().value());
    ASSERT_TRUE(context->multiplexer().post([&] { a.start(); }));
    run(c);
    EXPECT_TRUE(a.ended() && c.ended());
    EXPECT_EQ(peer, client.local().value());
}

TEST_P(io_awaitable_test, is_timed_out_at_its_deadline) {
    auto p = read_into(env, tcp.second, memory, seen, 1ms);
    run(p);
    EXPECT_EQ(seen, std::make_error_code(std::errc::timed_out).message());
}

// Stop requests.

TEST_P(io_awaitable_test, after_a_stop_request_nothing_is_started) {
    static thread_local int calls;
    calls = 0;
    // Counts what reaches the system.
    auto counting = platform::os();
    static auto const real = counting;
    counting.read = [](native_handle h, handle_kind k, buffer const* b, std::size_t n) noexcept {
        ++calls;
        return real.read(h, k, b, n);
    };
    auto const* const before = platform::replace_seam(&counting);
    auto const all = [](io_env const&, stream_socket_handle& h, std::span<std::byte> m,
                        int& ends) -> program {
        auto const r = co_await h.co_read(buffer(m));
        ends += !r && r.error() == std::errc::operation_canceled;
        auto const w = co_await h.co_write(const_buffer(m));
        ends += !w && w.error() == std::errc::operation_canceled;
        auto const c = co_await h.co_connect(endpoint::loopback_v4(1));
        ends += !c && c.error() == std::errc::operation_canceled;
        auto const t = co_await co_wait(0s);
        ends += !t && t.error() == std::errc::operation_canceled;
    };
    ASSERT_TRUE(tcp.first.write(bytes_of("x"), patience));
    int ends = 0;
    auto p = all(env, tcp.second, memory, ends);
    ASSERT_TRUE(context->multiplexer().post([&] {
        stop->request_stop();
        p.start();
    }));
    ASSERT_TRUE(context->run());
    platform::replace_seam(before);
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(ends, 4);
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "x");
}

TEST_P(io_awaitable_test, a_stop_request_reaches_the_read_in_flight) {
    auto p = read_into(env, tcp.second, memory, seen);
    ASSERT_TRUE(context->multiplexer().post([&] {
        p.start();
        EXPECT_FALSE(p.ended());
        stop->request_stop();
        EXPECT_FALSE(p.ended()) << "resumed inside request_stop";
    }));
    ASSERT_TRUE(context->run());
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(seen, canceled);
}

TEST_P(io_awaitable_test, a_stop_request_reaches_every_operation_in_flight) {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    listener.set_multiplexer(context->multiplexer());
    auto full = stream_socket_handle::socket_pair().value();
    full.first.set_multiplexer(context->multiplexer());
    std::string const block(64 << 10, 'x');
    while (full.first.try_write(bytes_of(block))) {
    }
    int ends = 0;
    auto const reading = [](io_env const&, io_handle& h, std::span<std::byte> m,
                            int& n) -> program {
        auto const r = co_await h.co_read(buffer(m));
        n += !r && r.error() == std::errc::operation_canceled;
    };
    auto const writing = [](io_env const&, io_handle& h, const_buffer b, int& n) -> program {
        auto const w = co_await h.co_write(b);
        n += !w && w.error() == std::errc::operation_canceled;
    };
    auto const accepting = [](io_env const&, listen_socket_handle& l, int& n) -> program {
        auto const s = co_await l.co_accept();
        n += !s && s.error() == std::errc::operation_canceled;
    };
    auto const waiting = [](io_env const&, deadline d, int& n) -> program {
        auto const t = co_await co_wait(d);
        n += !t && t.error() == std::errc::operation_canceled;
    };
    std::vector<program> programs;
    programs.push_back(reading(env, tcp.first, memory, ends));
    programs.push_back(writing(env, full.first, bytes_of(block), ends));
    programs.push_back(accepting(env, listener, ends));
    programs.push_back(waiting(env, 1h, ends));
    programs.push_back(waiting(env, deadline(), ends));
    ASSERT_TRUE(context->multiplexer().post([&] {
        for (auto& p : programs) {
            p.start();
        }
    }));
    ASSERT_TRUE(context->multiplexer().post([&] { stop->request_stop(); }));
    ASSERT_TRUE(context->run());
    EXPECT_EQ(ends, 5);
}

TEST_P(io_awaitable_test, a_read_that_finished_before_the_stop_keeps_its_bytes) {
    ASSERT_TRUE(tcp.first.write(bytes_of("kept"), patience));
    auto const twice = [](io_env const&, io_handle& h, std::span<std::byte> m,
                          std::string& text) -> program {
        while (auto const r = co_await h.co_read(buffer(m))) {
            text += text_of(r);
        }
    };
    auto p = twice(env, tcp.second, memory, seen);
    ASSERT_TRUE(context->multiplexer().post([&] { p.start(); }));
    bool over = false;
    while (seen.empty() && !over) {
        over = context->multiplexer().try_run_for(patience).value() <= 0;
    }
    stop->request_stop();
    ASSERT_TRUE(context->run());
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(seen, "kept");
}

// Executors.

TEST_P(io_awaitable_test, resumes_on_its_executor_and_nowhere_else) {
    work_queue place;
    by_hand const elsewhere{&place};
    stop_source never(elsewhere);
    io_env const other{elsewhere, never.token()};
    auto p = read_into(other, tcp.second, memory, seen);
    ASSERT_TRUE(context->multiplexer().post([&] { p.start(); }));
    ASSERT_TRUE(context->multiplexer().post(
        [&] { ASSERT_TRUE(tcp.first.write(bytes_of("x"), patience)); }));
    ASSERT_TRUE(context->run());
    EXPECT_FALSE(p.ended()) << "resumed inside the multiplexer";
    work* const resumption = place.pop();
    ASSERT_NE(resumption, nullptr);
    (*resumption)();
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(seen, "x");
}

TEST_P(io_awaitable_test, what_completes_at_once_does_not_suspend) {
    auto const several = [](io_env const&, io_handle& h, int& n) -> program {
        for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(co_await h.co_read(buffer()));
            EXPECT_TRUE(co_await co_wait(0s));
            ++n;
        }
    };
    int rounds = 0;
    auto p = several(env, tcp.second, rounds);
    ASSERT_TRUE(context->multiplexer().post([&] {
        p.start();
        EXPECT_TRUE(p.ended());
    }));
    ASSERT_TRUE(context->run());
    EXPECT_EQ(rounds, 10);
}

TEST_P(io_awaitable_test, bytes_that_are_there_are_read_without_suspending) {
    auto ends = pipe_handle::anonymous_pipe().value();
    ends.reader.set_multiplexer(context->multiplexer());
    std::string const text = "there";
    std::uint64_t turns = 0;
    // The first read may be the ring's. One that leaves room in its buffer has taken all: the next waits for more.
    auto const pass = [&](io_env const&, std::span<std::byte> room) -> program {
        for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(ends.writer.write(bytes_of(text), patience));
            EXPECT_EQ(text_of(co_await ends.reader.co_read(buffer(room))), text);
            turns = i == 0 ? context->multiplexer().counters().turns : turns;
        }
        EXPECT_EQ(context->multiplexer().counters().turns, turns);
    };
    auto p = pass(env, std::span(memory).first(text.size()));
    ASSERT_TRUE(context->multiplexer().post([&] { p.start(); }));
    ASSERT_TRUE(context->run());
    EXPECT_TRUE(p.ended());
}

TEST_P(io_awaitable_test, what_there_is_room_for_is_written_without_suspending) {
    if (GetParam() == multiplexer_kind::io_uring) {
        GTEST_SKIP() << "a write is the ring's to do, together with others";
    }
    auto ends = pipe_handle::anonymous_pipe().value();
    ends.writer.set_multiplexer(context->multiplexer());
    std::string const text = "there";
    auto const pass = [&](io_env const&, int& n) -> program {
        for (int i = 0; i < 10; ++i) {
            EXPECT_TRUE(co_await ends.writer.co_write(bytes_of(text)));
            ++n;
        }
    };
    int rounds = 0;
    auto p = pass(env, rounds);
    ASSERT_TRUE(context->multiplexer().post([&] {
        p.start();
        EXPECT_TRUE(p.ended());
    }));
    ASSERT_TRUE(context->run());
    EXPECT_EQ(rounds, 10);
}

program endless(io_env const&, io_handle* h, int& rounds, bool const& over) {
    while (!over) {
        if (h != nullptr) {
            EXPECT_TRUE(co_await h->co_read(buffer()));
        } else {
            EXPECT_TRUE(co_await co_wait(0s));
        }
        ++rounds;
    }
}

TEST_P(io_awaitable_test, what_always_completes_at_once_starves_nobody) {
    for (io_handle* const h :
         {static_cast<io_handle*>(&tcp.second), static_cast<io_handle*>(nullptr)}) {
        int rounds = 0;
        bool over = false;
        auto p = endless(env, h, rounds, over);
        ASSERT_TRUE(context->multiplexer().post([&] { p.start(); }));
        ASSERT_TRUE(context->multiplexer().post([&] {
            EXPECT_LE(rounds, 200);
            over = true;
        }));
        ASSERT_TRUE(context->run());
        EXPECT_TRUE(p.ended());
    }
}

// Lifetime.

TEST_P(io_awaitable_test, a_coroutine_destroyed_in_the_middle_of_an_await_is_not_resumed) {
    std::optional<program> pending = read_into(env, tcp.second, memory, seen);
    int rounds = 0;
    bool const over = false;
    std::optional<program> queued = endless(env, &tcp.first, rounds, over);
    ASSERT_TRUE(context->multiplexer().post([&] {
        pending->start();
        queued->start();
        pending.reset();
        queued.reset();
    }));
    ASSERT_TRUE(context->run());
    EXPECT_TRUE(seen.empty());
    ASSERT_TRUE(tcp.first.write(bytes_of("unread"), patience));
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "unread");
}

TEST_P(io_awaitable_test, the_handle_may_be_closed_during_the_await) {
    auto p = read_into(env, tcp.second, memory, seen);
    ASSERT_TRUE(context->multiplexer().post([&] {
        p.start();
        EXPECT_TRUE(tcp.second.close());
    }));
    ASSERT_TRUE(context->run());
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(seen, canceled);
}

class io_awaitable_threads_test : public io_awaitable_test {};

INSTANTIATE_TEST_SUITE_P(backends, io_awaitable_threads_test, real_backends(), name_of_backend);

TEST_P(io_awaitable_threads_test, a_stop_request_of_another_thread_cancels_on_the_executor) {
    auto p = read_into(env, tcp.second, memory, seen);
    std::thread other;
    ASSERT_TRUE(context->multiplexer().post([&] {
        p.start();
        other = std::thread([&] { stop->request_stop(); });
    }));
    ASSERT_TRUE(context->run());
    other.join();
    EXPECT_TRUE(p.ended());
    EXPECT_EQ(seen, canceled);
}

TEST_P(io_awaitable_test, a_wait_that_outlives_its_multiplexer_is_no_callback_any_more) {
    work_queue place;
    by_hand const elsewhere{&place};
    stop_source requested(elsewhere);
    io_env const other{elsewhere, requested.token()};
    auto m = another();
    auto const wait = [](io_env const&, io_multiplexer& in) -> program {
        (void)co_await io_awaitable<async_wait>(async_wait(in, 1h));
    };
    {
        program waiting = wait(other, *m);
        waiting.start();
        m.reset();
        EXPECT_FALSE(waiting.ended());
    }
    // Nobody is left to be called, here and at the end of the source.
    requested.request_stop();
    while (work* const item = place.pop()) {
        (*item)();
    }
}

}  // namespace
}  // namespace plumb::test
