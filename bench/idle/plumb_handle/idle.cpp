// SPDX-License-Identifier: Apache-2.0
//
// What a turn of the multiplexer costs while much is pending and one operation is ready.
//
//   idle --turn complete_io|run|timeout_io [--pending 1] [--turns 10000] [--multiplexer epoll|io_uring]
//
// For `timeout_io` timers are pending, which need no descriptor; otherwise reads of a silent pipe, each through a handle of
// its own, so that each needs a descriptor: the limit on open files is raised as far as it can be. In each turn one more is started and becomes ready
// outside of what is timed. Prints one line of JSON: the median ns a turn, with one reading of the clock. Exit: 0; 1 when
// anything failed; 2 for wrong usage.
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;

struct options {
    std::string_view turn;
    std::size_t pending = 1;
    std::size_t turns = 10'000;
};

[[noreturn]] void fail(char const* what, char const* why) {
    std::fprintf(stderr, "%s: %s\n", what, why);
    std::exit(1);
}

options parse(int argc, char** argv) {
    options o;
    bool right = argc % 2 == 1;
    for (int i = 1; right && i < argc; i += 2) {
        std::string_view const name = argv[i];
        if (name == "--turn") {
            o.turn = argv[i + 1];
        } else if (name == "--pending") {
            o.pending = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (name == "--turns") {
            o.turns = std::strtoull(argv[i + 1], nullptr, 10);
        } else if (name == "--multiplexer") {
            setenv("PLUMB_MULTIPLEXER", argv[i + 1], 1);
        } else {
            right = false;
        }
    }
    if (!right || o.turns == 0 ||
        (o.turn != "complete_io" && o.turn != "run" && o.turn != "timeout_io")) {
        std::fprintf(stderr, "usage: idle --turn complete_io|run|timeout_io [--pending N] "
                             "[--turns N] [--multiplexer epoll|io_uring]\n");
        std::exit(2);
    }
    return o;
}

void allow_descriptors(std::size_t count) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < count) {
        limit.rlim_cur = count;
        limit.rlim_max = std::max<rlim_t>(limit.rlim_max, count);
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            fail("so many pipes need more descriptors than are allowed", std::strerror(errno));
        }
    }
}

std::int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

template <class Result>
struct receiver {
    void set_value(Result&& r) noexcept {
        if (!r) {
            fail("an operation failed", r.error().message().c_str());
        }
    }
    void set_done() noexcept {}
};

template <class Sender>
using operation = plumb::io_operation_connection<Sender, receiver<typename Sender::result_type>>;

/// Times `turn`, which completes one operation, after each `prepare`.
template <class Prepare, class Turn>
void measure(std::size_t turns, Prepare prepare, Turn turn) {
    std::vector<std::int64_t> took;
    took.reserve(turns);
    for (std::size_t i = 0; i < turns; ++i) {
        prepare();
        std::int64_t const began = now();
        auto const count = turn();
        took.push_back(now() - began);
        if (!count || *count != 1) {
            fail("a turn", "didn't complete the one operation that is ready");
        }
    }
    std::nth_element(took.begin(), took.begin() + static_cast<std::ptrdiff_t>(turns / 2),
                     took.end());
    std::printf("{\"ns_per_turn\": %lld}\n", static_cast<long long>(took[turns / 2]));
}

void time_timers(options const& o, plumb::io_multiplexer& m) {
    std::deque<operation<plumb::async_wait>> idle;
    for (std::size_t i = 0; i < o.pending; ++i) {
        // In no order, as timers of connections are.
        auto const at = 1h + std::chrono::microseconds(i * 7'919 % 1'000'003);
        idle.emplace_back(plumb::async_wait(m, at), receiver<plumb::result<void>>());
        (void)idle.back().start();
    }
    operation<plumb::async_wait> due(plumb::async_wait(m, 1ns), {});
    measure(
        o.turns,
        [&] {
            if (due.started()) {
                due.reset();
            }
            (void)due.start();
        },
        [&] { return m.timeout_io(); });
    while (!idle.empty()) {
        idle.pop_back();
    }
}

plumb::pipe_handle::ends pipe() {
    auto made = plumb::pipe_handle::anonymous_pipe();
    if (!made) {
        fail("pipe", made.error().message().c_str());
    }
    return std::move(*made);
}

void time_reads(options const& o, plumb::io_multiplexer& m) {
    allow_descriptors(o.pending + 100);
    static std::byte byte;
    auto silent = pipe();
    auto talking = pipe();
    std::vector<plumb::pipe_handle> idle;
    idle.reserve(o.pending);
    std::deque<operation<plumb::async_read>> reads;
    auto const start = [&](plumb::pipe_handle& reader) -> auto& {
        reader.set_multiplexer(m);
        auto& read = reads.emplace_back(plumb::async_read(reader, {&byte, 1}),
                                        receiver<plumb::io_result<plumb::buffers>>());
        (void)read.start();
        if (reads.size() % 256 == 0) {
            (void)m.complete_io();
        }
        return read;
    };
    for (std::size_t i = 0; i < o.pending; ++i) {
        int const another = ::dup(static_cast<int>(silent.reader.native()));
        if (another < 0) {
            fail("dup", std::strerror(errno));
        }
        start(idle.emplace_back(plumb::pipe_handle::adopt(another).value()));
    }
    auto& ready = start(talking.reader);
    auto& writer = talking.writer;
    (void)m.complete_io();
    auto const prepare = [&] {
        if (ready.completed()) {
            ready.reset();
            (void)ready.start();
            (void)m.complete_io();  // it waits
        }
        (void)writer.write({&byte, 1});
    };
    if (o.turn == "run") {
        measure(o.turns, prepare, [&] { return m.run(); });
    } else {
        measure(o.turns, prepare, [&] { return m.complete_io(); });
    }
    std::fflush(stdout);
    std::_Exit(0);  // without a thought for what is pending
}

}  // namespace

int main(int argc, char** argv) {
    options const o = parse(argc, argv);
    auto& m = plumb::io_multiplexer::this_thread();
    if (o.turn == "timeout_io") {
        time_timers(o, m);
    } else {
        time_reads(o, m);
    }
}
