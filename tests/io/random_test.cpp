// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation_connection.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>

#include "support/backend.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// Random programs: reads, writes, cancellations, deadlines, closing and destruction in any order. What
// must hold: each operation ends once, and each stream gives its bytes once and in order.
class random_test : public on_every_backend {
protected:
    /// One direction of a connection: what was written so far, and what was read of it.
    struct stream {
        std::uint64_t written = 0;
        std::uint64_t read = 0;
    };

    static std::byte at(std::uint64_t position) noexcept {
        return static_cast<std::byte>(position * 37 + position / 256);
    }

    struct connection;

    struct reading {
        connection& owner;
        stream& from;
        std::vector<std::byte> memory;
        record_of<async_read> told;
        std::optional<io_operation_connection<async_read, recorder<io_result<buffers>>>> operation;

        /// @return false when the stream is over
        bool finish() {
            if (!told.done()) {
                return true;
            }
            bool open = true;
            if (*told.value) {
                for (buffer const b : **told.value) {
                    for (std::byte const byte : b) {
                        EXPECT_EQ(byte, at(from.read)) << "at byte " << from.read;
                        ++from.read;
                    }
                }
                open = told.value->bytes_transferred() != 0 || memory.empty();
            } else {
                auto const e = told.value->error();
                open = e == std::errc::timed_out || e == std::errc::operation_canceled;
                EXPECT_TRUE(open || e == std::errc::connection_reset) << e.message();
            }
            operation.reset();
            told = {};
            return open;
        }
    };

    struct writing {
        connection& owner;
        stream& into;
        std::vector<std::byte> memory;
        record_of<async_write> told;
        std::optional<io_operation_connection<async_write, recorder<io_result<const_buffers>>>>
            operation;

        bool finish() {
            if (!told.done()) {
                return true;
            }
            bool open = true;
            if (*told.value) {
                into.written += told.value->bytes_transferred();
            } else {
                auto const e = told.value->error();
                open = e == std::errc::timed_out || e == std::errc::operation_canceled;
                EXPECT_TRUE(open || e == std::errc::connection_reset || e == std::errc::broken_pipe)
                    << e.message();
            }
            operation.reset();
            told = {};
            return open;
        }
    };

    struct connection {
        stream_socket_handle::pair ends;
        stream there;
        stream back;
        reading read_second{*this, there, {}, {}, {}};
        reading read_first{*this, back, {}, {}, {}};
        writing write_first{*this, there, {}, {}, {}};
        writing write_second{*this, back, {}, {}, {}};

        explicit connection(stream_socket_handle::pair p) : ends(std::move(p)) {}
    };

    std::mt19937 random;

    std::size_t below(std::size_t limit) { return random() % limit; }

    deadline any_limit() {
        switch (below(6)) {
        case 0:
            return 0s;
        case 1:
            return std::chrono::microseconds(below(500));
        case 2:
            return now() + std::chrono::microseconds(below(500));
        case 3:
            return system_now() + std::chrono::microseconds(below(500));
        default:
            return {};
        }
    }

    void start_read(reading& r, io_handle& h) {
        if (r.operation || !h.is_open()) {
            return;
        }
        r.memory.resize(below(3) == 0 ? below(20'000) : below(64));
        r.operation.emplace(async_read(h, buffer(r.memory), any_limit()), recorder(r.told));
        (void)r.operation->start();
    }
    void start_write(writing& w, io_handle& h) {
        if (w.operation || !h.is_open()) {
            return;
        }
        w.memory.resize(below(4) == 0 ? below(100'000) : below(200));
        for (std::size_t i = 0; i < w.memory.size(); ++i) {
            w.memory[i] = at(w.into.written + i);
        }
        w.operation.emplace(async_write(h, const_buffer(w.memory), any_limit()), recorder(w.told));
        (void)w.operation->start();
    }

    /// One random step on a connection. @return false when it shall be replaced
    bool step(connection& c) {
        switch (below(20)) {
        case 0:
        case 1:
        case 2:
        case 3:
            start_read(c.read_first, c.ends.first);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            start_read(c.read_second, c.ends.second);
            break;
        case 8:
        case 9:
        case 10:
            start_write(c.write_first, c.ends.first);
            break;
        case 11:
        case 12:
        case 13:
            start_write(c.write_second, c.ends.second);
            break;
        case 14:
            if (c.read_first.operation) {
                c.read_first.operation->cancel();
            }
            break;
        case 15:
            if (c.write_second.operation) {
                c.write_second.operation->cancel();
            }
            break;
        case 16:
            if (c.read_second.operation) {
                (void)c.read_second.operation->poll();
            }
            break;
        case 17: {
            // The handle moves while operations are in flight.
            stream_socket_handle moved(std::move(c.ends.first));
            c.ends.first = std::move(moved);
            break;
        }
        default:
            if (below(30) != 0) {
                break;
            }
            switch (below(4)) {
            case 0:
                (void)c.ends.first.close();
                break;
            case 1:
                (void)c.ends.second.set_reset_on_close();
                (void)c.ends.second.close();
                break;
            case 2:
                (void)c.ends.first.shutdown_write();
                break;
            default:
                return false;
            }
        }
        return c.read_first.finish() && c.read_second.finish() && c.write_first.finish() &&
               c.write_second.finish();
    }

    void play(unsigned seed, std::size_t steps) {
        random.seed(seed);
        std::vector<std::unique_ptr<connection>> all;
        std::size_t replaced = 0;
        std::uint64_t moved = 0;
        for (std::size_t i = 0; i < 8; ++i) {
            all.push_back(std::make_unique<connection>(tcp_pair()));
        }
        for (std::size_t i = 0; i < steps && !HasFailure(); ++i) {
            auto& c = all[below(all.size())];
            if (!step(*c)) {
                // Destroyed with whatever is in flight; either the handles or the operations go first.
                moved += c->there.read + c->back.read;
                if (below(2) == 0) {
                    c->ends = {};
                }
                c = std::make_unique<connection>(tcp_pair());
                ++replaced;
            }
            if (below(3) == 0) {
                auto const done =
                    below(4) == 0 ? multiplexer().try_run_for(std::chrono::microseconds(below(300)),
                                                              static_cast<int>(1 + below(4)))
                                  : multiplexer().try_run();
                ASSERT_TRUE(done) << done.error().message();
            }
        }
        // Everything ends, and nothing is left.
        for (auto& c : all) {
            for (auto* const r : {&c->read_first, &c->read_second}) {
                if (r->operation) {
                    r->operation->cancel();
                }
            }
            for (auto* const w : {&c->write_first, &c->write_second}) {
                if (w->operation) {
                    w->operation->cancel();
                }
            }
        }
        EXPECT_TRUE(drive_until([&] {
            return std::ranges::all_of(all, [](auto const& c) {
                auto const over = [](auto const& o) { return !o.operation || o.told.done(); };
                return over(c->read_first) && over(c->read_second) && over(c->write_first) &&
                       over(c->write_second);
            });
        }));
        EXPECT_EQ(multiplexer().try_run().value(), 0);
        for (auto const& c : all) {
            moved += c->there.read + c->back.read;
        }
        EXPECT_GT(moved, 0u);
        EXPECT_GT(replaced, 0u);
    }
};

INSTANTIATE_TEST_SUITE_P(backends, random_test, every_backend(), name_of_backend);

TEST_P(random_test, programs_lose_no_byte_and_no_operation) {
    for (unsigned seed = 1; seed <= 10 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        play(seed, 4000);
    }
}

TEST_P(random_test, thousands_of_operations_at_once_all_end) {
    constexpr std::size_t count = 3000;
    struct one {
        stream_socket_handle::pair ends;
        std::byte byte;
        record_of<async_read> told;
        std::optional<io_operation_connection<async_read, recorder<io_result<buffers>>>> operation;
    };
    std::vector<std::unique_ptr<one>> all;
    // More than queues of submissions and completions hold, without a turn in between.
    for (std::size_t i = 0; i < count; ++i) {
        auto o = std::make_unique<one>();
        o->ends = stream_socket_handle::socket_pair().value();
        o->ends.first.set_multiplexer(multiplexer());
        o->operation.emplace(async_read(o->ends.first, buffer(&o->byte, 1)), recorder(o->told));
        ASSERT_EQ(o->operation->start(), io_status::pending);
        all.push_back(std::move(o));
    }
    for (auto const& o : all) {
        ASSERT_TRUE(o->ends.second.write(bytes_of("x"), patience));
    }
    ASSERT_TRUE(drive_until(
        [&] { return std::ranges::all_of(all, [](auto const& o) { return o->told.done(); }); }));
    for (auto const& o : all) {
        ASSERT_EQ(o->told.value->bytes_transferred(), 1u);
        o->told = {};
        o->operation->reset();
        ASSERT_EQ(o->operation->start(), io_status::pending);
    }
    // A third is canceled, a third closed, the rest destroyed in flight.
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 3 == 0) {
            all[i]->operation->cancel();
        } else if (i % 3 == 1) {
            ASSERT_TRUE(all[i]->ends.first.close());
        } else {
            all[i]->operation.reset();
        }
    }
    ASSERT_TRUE(drive_until([&] {
        return std::ranges::all_of(all,
                                   [](auto const& o) { return !o->operation || o->told.done(); });
    }));
    for (auto const& o : all) {
        if (o->operation) {
            ASSERT_EQ(o->told.value->error(), std::errc::operation_canceled);
        } else {
            ASSERT_TRUE(o->told.untold());
        }
    }
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

}  // namespace
}  // namespace plumb::test
