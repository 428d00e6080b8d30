// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_send.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/failing_calls.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// Programs that end with the first error. One call through the seam after the other fails, until none does.
class every_call_fails : public on_every_backend {
protected:
    using program = std::function<result<void>(io_multiplexer&)>;

    void fail_each_call_of(program const& run, int least_calls) {
        std::size_t const open_before = descriptors();
        int quiet = 0;
        int n = 0;
        for (bool failed = true; failed;) {
            auto const begin = std::chrono::steady_clock::now();
            result<void> done;
            {
                failing_calls const faults(++n);
                done = with_multiplexer(run);
                failed = faults.failed();
            }
            if (!failed) {
                EXPECT_TRUE(done) << done.error().message();
            } else if (!done) {
                EXPECT_EQ(done.error(), std::errc::io_error) << n << ": " << done.error().message();
            } else {
                ++quiet;
            }
            EXPECT_EQ(descriptors(), open_before) << n;
            EXPECT_LT(std::chrono::steady_clock::now() - begin, patience) << n;
            ASSERT_LT(n, 1000);
            ASSERT_FALSE(HasFailure());
        }
        EXPECT_GT(n, least_calls);
        // What a destructor does, and what is only asked to do better.
        EXPECT_LE(quiet, n / 2);
    }

    /// What an operation gives that has been started.
    template <class Sender>
    struct in_flight {
        in_flight(io_multiplexer& m, Sender const& sender)
            : where(m), operation(plumb::connect(sender, recorder(told))) {
            (void)operation.start();
        }
        typename Sender::result_type end() {
            while (!told.done()) {
                if (auto const turned = where.try_run_for(patience); !turned) {
                    return turned.error();
                } else if (*turned <= 0 && !told.done()) {
                    return std::make_error_code(std::errc::timed_out);
                }
            }
            return std::move(*told.value);
        }
        io_multiplexer& where;
        record_of<Sender> told;
        io_operation_connection<Sender, recorder<typename Sender::result_type>> operation;
    };

    template <class Sender>
    static typename Sender::result_type complete(io_multiplexer& m, Sender const& sender) {
        return in_flight<Sender>(m, sender).end();
    }

    std::array<std::byte, 64> memory{};
    std::string const text = "hello";

    /// Moves bytes both ways by operations and by blocking calls, and ends.
    result<void> talk(io_multiplexer& m, stream_socket_handle& a, stream_socket_handle& b) {
        in_flight reading(m, async_read(b, buffer(memory)));
        if (auto const r = complete(m, async_write(a, bytes_of(text))); !r) {
            return r.error();
        }
        if (auto const r = reading.end(); !r) {
            return r.error();
        }
        if (auto const r = b.write(bytes_of(text), patience); !r) {
            return r.error();
        }
        if (auto const r = a.read(buffer(memory), patience); !r) {
            return r.error();
        }
        if (auto const r = a.shutdown_write(); !r) {
            return r;
        }
        if (auto const r = complete(m, async_read(b, buffer(memory))); !r) {
            return r.error();
        }
        if (auto const r = a.close(); !r) {
            return r;
        }
        return b.close();
    }

    result<void> meet_and_talk(io_multiplexer& m, endpoint const& where) {
        auto listener = listen_socket_handle::listen(where);
        if (!listener) {
            return listener.error();
        }
        listener->set_multiplexer(m);
        auto const name = listener->local();
        if (!name) {
            return name.error();
        }
        auto client = stream_socket_handle::stream_socket(where.family());
        if (!client) {
            return client.error();
        }
        client->set_multiplexer(m);
        in_flight accepting(m, async_accept(*listener));
        if (auto const r = complete(m, async_connect(*client, *name)); !r) {
            return r.error();
        }
        auto server = accepting.end();
        if (!server) {
            return server.error();
        }
        server->set_multiplexer(m);
        return talk(m, *client, *server);
    }

    result<void> exchange_datagrams(io_multiplexer& m, endpoint const& here,
                                    endpoint const& there) {
        auto a = datagram_socket_handle::datagram_socket(here.family());
        if (!a) {
            return a.error();
        }
        auto b = datagram_socket_handle::datagram_socket(here.family());
        if (!b) {
            return b.error();
        }
        a->set_multiplexer(m);
        b->set_multiplexer(m);
        if (auto const r = a->bind(here); !r) {
            return r;
        }
        if (auto const r = b->bind(there); !r) {
            return r;
        }
        auto const name = b->local();
        if (!name) {
            return name.error();
        }
        in_flight receiving(m, async_receive(*b, buffer(memory)));
        if (auto const r = complete(m, async_send(*a, bytes_of(text), *name)); !r) {
            return r.error();
        }
        auto const received = receiving.end();
        if (!received) {
            return received.error();
        }
        if (auto const r = b->send(bytes_of(text), received->from, patience); !r) {
            return r.error();
        }
        if (auto const r = a->receive(buffer(memory), patience); !r) {
            return r.error();
        }
        if (auto const r = a->connect(*name); !r) {
            return r;
        }
        if (auto const r = complete(m, async_write(*a, bytes_of(text))); !r) {
            return r.error();
        }
        if (auto const r = complete(m, async_read(*b, buffer(memory))); !r) {
            return r.error();
        }
        if (auto const r = a->close(); !r) {
            return r;
        }
        return b->close();
    }

private:
    result<void> with_multiplexer(program const& run) {
        auto const m = io_multiplexer::make(GetParam());
        return m ? run(**m) : m.error();
    }
    [[nodiscard]] std::size_t descriptors() const {
        return simulated() ? 0 : open_descriptors();  // a world counts its handles when it ends
    }
};

INSTANTIATE_TEST_SUITE_P(backends, every_call_fails, every_backend(), name_of_backend);

TEST_P(every_call_fails, of_a_connection_and_nothing_hangs_or_leaks) {
    fail_each_call_of(
        [this](io_multiplexer& m) { return meet_and_talk(m, endpoint::loopback_v4(0)); }, 8);
}

TEST_P(every_call_fails, of_a_unix_connection_and_nothing_hangs_or_leaks) {
    int runs = 0;
    fail_each_call_of(
        [&](io_multiplexer& m) {
            auto const name = "plumb-every-call-" +
                              std::to_string(now().time_since_epoch().count()) +
                              std::to_string(++runs);
            return meet_and_talk(m, endpoint::unix_abstract(name).value());
        },
        8);
}

TEST_P(every_call_fails, of_a_socket_pair_and_nothing_hangs_or_leaks) {
    fail_each_call_of(
        [this](io_multiplexer& m) -> result<void> {
            auto pair = stream_socket_handle::socket_pair();
            if (!pair) {
                return pair.error();
            }
            pair->first.set_multiplexer(m);
            pair->second.set_multiplexer(m);
            return talk(m, pair->first, pair->second);
        },
        5);
}

TEST_P(every_call_fails, of_datagrams_and_nothing_hangs_or_leaks) {
    auto const any = endpoint::loopback_v4(0);
    fail_each_call_of([&](io_multiplexer& m) { return exchange_datagrams(m, any, any); }, 10);
}

TEST_P(every_call_fails, of_unix_datagrams_and_nothing_hangs_or_leaks) {
    int runs = 0;
    fail_each_call_of(
        [&](io_multiplexer& m) {
            auto const name = "plumb-every-call-" +
                              std::to_string(now().time_since_epoch().count()) +
                              std::to_string(++runs);
            return exchange_datagrams(m, endpoint::unix_abstract(name + "a").value(),
                                      endpoint::unix_abstract(name + "b").value());
        },
        10);
}

TEST_P(every_call_fails, of_a_pipe_and_a_timer_and_nothing_hangs_or_leaks) {
    fail_each_call_of(
        [this](io_multiplexer& m) -> result<void> {
            auto ends = pipe_handle::anonymous_pipe();
            if (!ends) {
                return ends.error();
            }
            ends->reader.set_multiplexer(m);
            ends->writer.set_multiplexer(m);
            in_flight reading(m, async_read(ends->reader, buffer(memory)));
            if (auto const r = complete(m, async_write(ends->writer, bytes_of(text))); !r) {
                return r.error();
            }
            if (auto const r = reading.end(); !r) {
                return r.error();
            }
            if (auto const r = complete(m, async_wait(m, system_now() + 1ms)); !r) {
                return r;
            }
            if (auto const r = ends->writer.close(); !r) {
                return r;
            }
            if (auto const r = ends->reader.read(buffer(memory), patience); !r) {
                return r.error();
            }
            return ends->reader.close();
        },
        5);
}

}  // namespace
}  // namespace plumb::test
