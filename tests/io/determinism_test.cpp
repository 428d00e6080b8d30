// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation_connection.hpp>

#include <plumb/handle/file_handle.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_barrier.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_send.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/async_write_zero_copy.hpp>
#include <plumb/io/atomic_sender.hpp>

#include "support/backend.hpp"
#include "support/hidden_costs.hpp"
#include "support/sanitized.hpp"
#include "support/temporary_directory.hpp"
#include "support/traced_calls.hpp"

#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using strings = std::vector<std::string>;

constexpr auto ipv4 = endpoint::family_type::ipv4;

/// What operations are tried on.
struct peers {
    explicit peers(io_multiplexer& m) : where(m) {
        listener.set_multiplexer(m);
        client.connect(listener.local().value(), patience).value();
        server = listener.accept(patience).value();
        receiver.bind(endpoint::loopback_v4(0)).value();
        for (handle* const h :
             {static_cast<handle*>(&client), static_cast<handle*>(&server),
              static_cast<handle*>(&pipe.reader), static_cast<handle*>(&pipe.writer),
              static_cast<handle*>(&receiver), static_cast<handle*>(&sender)}) {
            h->set_multiplexer(m);
        }
        if (m.kind() != multiplexer_kind::sim) {
            file = plumb::file({}, (folder.path() / "ping").native(), file_handle::mode::write,
                               file_handle::creation::create_new)
                       .value();
            EXPECT_TRUE(file.write(bytes_of(text)));
            file.set_multiplexer(m);
        }
    }

    static stream_socket_handle socket() {
        return stream_socket_handle::stream_socket(ipv4).value();
    }

    io_multiplexer& where;
    listen_socket_handle listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    stream_socket_handle client = socket();
    stream_socket_handle server;
    pipe_handle::ends pipe = pipe_handle::anonymous_pipe().value();
    datagram_socket_handle receiver = datagram_socket_handle::datagram_socket(ipv4).value();
    datagram_socket_handle sender = datagram_socket_handle::datagram_socket(ipv4).value();
    temporary_directory folder;
    file_handle file;  // there are none in a simulated world
    std::array<std::byte, 64> memory{};
    std::string const text = "ping";
};

// Keeps what it is told.
template <class Result>
struct keeping {
    std::optional<Result>* told;
    bool* done;
    void set_value(Result&& r) noexcept { told->emplace(std::move(r)); }
    void set_done() noexcept { *done = true; }
};

/// Called where what is measured begins and ends, in turns.
using turning = std::function<void()>;

/// One operation from `connect` to `set_done`, in two parts where the peer has to do something meanwhile.
template <class Sender>
void operate(peers& p, Sender const& sender, turning const& turn,
             std::function<void()> const& act = {}) {
    std::optional<typename Sender::result_type> told;
    bool done = false;
    turn();
    auto operation = connect(sender, keeping<typename Sender::result_type>{&told, &done});
    (void)operation.start();
    if (act) {
        turn();
        act();
        turn();
    }
    while (!done) {
        (void)p.where.run();
    }
    turn();
    EXPECT_TRUE(*told);
}

struct kind_of_operation {
    std::string name;
    std::function<void(peers&, turning const&)> operate;
    // The system calls of each part, the first time, when the handle is registered, and later.
    strings epoll_at_first;
    strings epoll;
    strings io_uring_at_first;
    strings io_uring;
    bool on_files = false;
};

std::vector<kind_of_operation> const operations{
    {"a read of what is there",
     [](peers& p, turning const& turn) {
         EXPECT_TRUE(p.pipe.writer.write(bytes_of(p.text)));
         operate(p, async_read(p.pipe.reader, buffer(p.memory).first(4)), turn);
     },
     {"fcntl fcntl read"},
     {"read"},
     {"io_uring_enter fcntl fcntl"},
     {"read"}},
    {"a read that waits",
     [](peers& p, turning const& turn) {
         operate(p, async_read(p.server, buffer(p.memory)), turn,
                 [&] { EXPECT_TRUE(p.client.write(bytes_of(p.text))); });
     },
     {"getsockopt recvfrom epoll_ctl", "epoll_wait recvfrom"},
     {"", "epoll_wait recvfrom"},
     {"", "io_uring_enter"},
     {"", "io_uring_enter"}},
    {"a read with a deadline",
     [](peers& p, turning const& turn) {
         operate(p, async_read(p.server, buffer(p.memory), 1h), turn,
                 [&] { EXPECT_TRUE(p.client.write(bytes_of(p.text))); });
     },
     {"getsockopt recvfrom epoll_ctl", "epoll_pwait2 recvfrom"},
     {"", "epoll_pwait2 recvfrom"},
     {"", "io_uring_enter"},
     {"", "io_uring_enter"}},
    {"an atomic read that waits",
     [](peers& p, turning const& turn) {
         operate(p, atomic_sender<async_read>(p.server, buffer(p.memory)), turn,
                 [&] { EXPECT_TRUE(p.client.write(bytes_of(p.text))); });
     },
     {"", "getsockopt recvfrom"},
     {"", "epoll_wait recvfrom"},
     {"", "io_uring_enter"},
     {"", "io_uring_enter"}},
    {"a pooled read",
     [](peers& p, turning const& turn) {
         operate(p, async_read_pooled(p.server, 64), turn,
                 [&] { EXPECT_TRUE(p.client.write(bytes_of(p.text))); });
     },
     {"getsockopt recvfrom epoll_ctl", "epoll_wait recvfrom"},
     {"", "epoll_wait recvfrom"},
     {"", "io_uring_enter"},
     {"", "io_uring_enter"}},
    {"a write",
     [](peers& p, turning const& turn) {
         operate(p, async_write(p.client, bytes_of(p.text)), turn);
         EXPECT_TRUE(p.server.read(buffer(p.memory)));
     },
     {"getsockopt sendto"},
     {"sendto"},
     {"io_uring_enter"},
     {"io_uring_enter"}},
    {"a zero-copy write",
     [](peers& p, turning const& turn) {
         operate(p, async_write_zero_copy(p.client, bytes_of(p.text)), turn);
         EXPECT_TRUE(p.server.read(buffer(p.memory)));
     },
     {"getsockopt sendto"},
     {"sendto"},
     {"io_uring_enter"},
     {"io_uring_enter"}},
    {"a barrier",
     [](peers& p, turning const& turn) {
         operate(p, async_barrier(p.pipe.writer, bytes_of(p.text)), turn);
     },
     {"fcntl fcntl"},
     {""},
     {""},
     {""}},
    {"a read of a file",
     [](peers& p, turning const& turn) {
         operate(p, async_read(p.file, {buffer(p.memory).first(4), 0}), turn);
     },
     {"preadv2"},
     {"preadv2"},
     {"preadv2"},
     {"preadv2"},
     true},
    {"an atomic write",
     [](peers& p, turning const& turn) {
         operate(p, atomic_sender<async_write>(p.client, bytes_of(p.text)), turn);
         EXPECT_TRUE(p.server.read(buffer(p.memory)));
     },
     {"getsockopt sendto"},
     {"sendto"},
     {"io_uring_enter"},
     {"io_uring_enter"}},
    {"an accept",
     [](peers& p, turning const& turn) {
         auto client = peers::socket();
         operate(p, async_accept(p.listener), turn,
                 [&] { EXPECT_TRUE(client.connect(p.listener.local().value(), patience)); });
     },
     {"accept4 epoll_ctl", "epoll_wait accept4"},
     {"accept4", "epoll_wait accept4"},
     {"", "io_uring_enter accept4"},
     {"accept4", "io_uring_enter accept4"}},
    // With whether and how it ended, and with the flag that keeps connect(2) from waiting taken off again.
    {"a connect",
     [](peers& p, turning const& turn) {
         auto client = peers::socket();
         client.set_multiplexer(p.where);
         operate(p, async_connect(client, p.listener.local().value()), turn);
         (void)p.listener.accept(patience).value();
     },
     {"getsockopt connect epoll_ctl epoll_wait poll getsockopt fcntl fcntl"},
     {"getsockopt connect epoll_ctl epoll_wait poll getsockopt fcntl fcntl"},
     {"connect io_uring_enter poll getsockopt fcntl fcntl"},
     {"connect io_uring_enter poll getsockopt fcntl fcntl"}},
    {"a send",
     [](peers& p, turning const& turn) {
         operate(p, async_send(p.sender, bytes_of(p.text), p.receiver.local().value()), turn);
         (void)p.receiver.receive(buffer(p.memory)).value();
     },
     {"sendmsg"},
     {"sendmsg"},
     {"io_uring_enter"},
     {"io_uring_enter"}},
    {"a receive",
     [](peers& p, turning const& turn) {
         operate(p, async_receive(p.receiver, buffer(p.memory)), turn,
                 [&] { EXPECT_TRUE(p.sender.send(bytes_of(p.text), p.receiver.local().value())); });
     },
     {"recvmsg epoll_ctl", "epoll_wait recvmsg"},
     {"recvmsg", "epoll_wait recvmsg"},
     {"", "io_uring_enter"},
     {"", "io_uring_enter"}},
    {"a wait",
     [](peers& p, turning const& turn) { operate(p, async_wait(p.where, 100us), turn); },
     {"epoll_pwait2"},
     {"epoll_pwait2"},
     {"io_uring_enter"},
     {"io_uring_enter"}},
};

using determinism = on_every_backend;
INSTANTIATE_TEST_SUITE_P(backends, determinism, every_backend(), name_of_backend);

/// Without those between the parts.
strings of_the_operation(strings const& calls) {
    strings some;
    for (std::size_t i = 0; i < calls.size(); i += 2) {
        some.push_back(calls[i]);
    }
    return some;
}

TEST(traced_calls, are_those_between_the_divisions) {
    auto const calls = traced_calls([](auto const& divide) {
        ::fsync(-1);
        divide();
        ::close(-1);
        ::fsync(-1);
        divide();
        divide();
        ::close(-1);
    });
    if (calls.empty()) {
        GTEST_SKIP() << "no process may be traced";
    }
    EXPECT_EQ(calls, (strings{"close fsync", ""}));
}

TEST_P(determinism, no_system_call_is_made_but_the_io_itself) {
    for (auto const& op : operations) {
        if (op.on_files && simulated()) {
            continue;
        }
        auto const traced = [&](int times) {
            return of_the_operation(traced_calls([&](auto const& divide) {
                auto const m = another();
                {
                    peers others(*m);  // so that the multiplexer has begun, with such a thing too
                    op.operate(others, [] {});
                }
                peers p(*m);
                for (int i = 1; i < times; ++i) {
                    op.operate(p, [] {});
                }
                op.operate(p, divide);
            }));
        };
        auto const first = traced(1);
        auto const later = traced(4);
        if (first.empty()) {
            GTEST_SKIP() << "no process may be traced";
        }
        switch (GetParam()) {
        case multiplexer_kind::epoll:
            EXPECT_EQ(first, op.epoll_at_first) << op.name;
            EXPECT_EQ(later, op.epoll) << op.name;
            break;
        case multiplexer_kind::io_uring:
            EXPECT_EQ(first, op.io_uring_at_first) << op.name;
            EXPECT_EQ(later, op.io_uring) << op.name;
            break;
        case multiplexer_kind::sim:
            EXPECT_EQ(later, strings(later.size())) << op.name;
            break;
        }
    }
}

TEST(hidden_costs, are_counted) {
    if (sanitized) {
        GTEST_SKIP() << "the sanitizer has these functions for itself";
    }
    auto const before = hidden_costs::so_far();
    std::mutex m;
    {
        std::lock_guard const locked(m);
    }
    try {
        throw std::runtime_error("of a text that is too long for a small string");
    } catch (std::runtime_error const&) {
    }
    auto const costs = hidden_costs::so_far() - before;
    EXPECT_EQ(costs.locks, 1u);
    EXPECT_EQ(costs.exceptions, 1u);
    EXPECT_GE(costs.allocations, 1u);
}

// Also the first time, where the multiplexer has had as many handles before.
TEST_P(determinism, nothing_is_allocated_locked_or_thrown) {
    {
        peers before(multiplexer());
        for (auto const& op : operations) {
            if (!op.on_files || !simulated()) {
                op.operate(before, [] {});
            }
        }
    }
    for (auto const& op : operations) {
        if (op.on_files && simulated()) {
            continue;
        }
        hidden_costs all{};
        hidden_costs begin{};
        bool measures = false;
        auto const turn = [&] {
            auto const now = hidden_costs::so_far();
            if (measures) {
                all.allocations += (now - begin).allocations;
                all.locks += (now - begin).locks;
                all.exceptions += (now - begin).exceptions;
            }
            measures = !measures;
            begin = now;
        };
        peers p(multiplexer());
        for (int i = 0; i < 100; ++i) {
            op.operate(p, turn);
        }
        // The simulated network keeps bytes on the heap; there is no pool under a sanitizer.
        if (!simulated() && !(sanitized && op.name == "a pooled read")) {
            EXPECT_EQ(all.allocations, 0u) << op.name;
        }
        EXPECT_EQ(all.locks, 0u) << op.name;
        EXPECT_EQ(all.exceptions, 0u) << op.name;
    }
}

}  // namespace
}  // namespace plumb::test
