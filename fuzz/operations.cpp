// SPDX-License-Identifier: Apache-2.0
// Sequences of operations on pipes and connections, on each backend, against a model: a queue of bytes in each
// direction. The n-th byte of a direction has a value of its own, so that the queue is two numbers.
#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>
#include <plumb/sim/world.hpp>

#include "input.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

using namespace plumb;
using namespace std::chrono_literals;
using plumb::fuzz::check;
using plumb::fuzz::input;

namespace {

std::byte value_at(std::size_t n) noexcept {
    return static_cast<std::byte>(n * 7 + (n >> 8) + (n >> 16));
}

/// What one end of a direction is told of its operation.
template <class Result>
struct told {
    std::optional<Result> value;
    int dones = 0;
};

template <class Result>
struct telling {
    told<Result>* to;
    void set_value(Result&& r) noexcept {
        check(!to->value, "a value is told once");
        to->value.emplace(std::move(r));
    }
    void set_done() noexcept {
        check(to->value.has_value(), "the value comes first");
        ++to->dones;
        check(to->dones == 1, "the end is told once");
    }
};

template <class Sender>
struct end {
    using result = typename Sender::result_type;
    using connection = io_operation_connection<Sender, telling<result>>;

    io_handle* target = nullptr;
    std::vector<std::byte> memory;
    std::optional<connection> operation;
    told<result> heard;

    [[nodiscard]] bool busy() const noexcept { return operation && !operation->completed(); }
    [[nodiscard]] bool open() const noexcept { return target->is_open(); }
};

/// Bytes from a writer to a reader.
class direction {
public:
    direction(io_handle& from, io_handle& to, bool prompt) : prompt_(prompt) {
        write_.target = &from;
        read_.target = &to;
    }

    void step(unsigned what, unsigned n, io_multiplexer& m) {
        hear();  // the other direction's steps may have completed something
        switch (what) {
        case 0:
            write_now(n);
            break;
        case 1:
            read_now(n);
            break;
        case 2:
        case 3:
            start_read(n, what == 3);
            break;
        case 4:
        case 5:
            start_write(n, what == 5);
            break;
        case 6:
            poll(read_);
            break;
        case 7:
            poll(write_);
            break;
        case 8:
            if (read_.operation) {
                read_.operation->cancel();
            }
            break;
        case 9:
            if (write_.operation) {
                write_.operation->cancel();
            }
            break;
        case 10:
            check(static_cast<bool>(m.complete_io(n % 4 == 0 ? -1 : static_cast<int>(n % 4))),
                  "complete_io succeeds");
            break;
        case 11:
            check(static_cast<bool>(m.timeout_io()), "timeout_io succeeds");
            break;
        case 12:
            if (n % 4 == 0) {
                close(read_);
            }
            break;
        case 13:
            if (n % 4 == 0) {
                close(write_);
            }
            break;
        case 14:
            n % 2 == 0 ? destroy(read_) : destroy(write_);
            break;
        default:
            check(static_cast<bool>(m.try_run()), "try_run succeeds");
        }
        hear();
    }

    /// Whether what is in flight ends by itself or by being told to, where nobody closes.
    void finish(io_multiplexer& m) {
        for (int i = 0; i < 100 && (read_.busy() || write_.busy()); ++i) {
            if (read_.busy()) {
                read_.operation->cancel();
            }
            if (write_.busy()) {
                write_.operation->cancel();
            }
            check(static_cast<bool>(m.try_run()), "try_run succeeds");
        }
        for (int i = 0; i < 1000 && (read_.busy() || write_.busy()); ++i) {
            check(static_cast<bool>(m.try_run_for(1ms)), "try_run_for succeeds");
        }
        check(!read_.busy() && !write_.busy(), "what is canceled ends");
        hear();
    }

private:
    static std::size_t size_of(unsigned n) noexcept {
        return n < 128 ? n : std::size_t{n - 127} * 512;  // up to 64 KiB
    }

    void write_now(unsigned n) {
        if (write_.operation || !write_.open()) {
            return;
        }
        fill(size_of(n));
        note_written(write_.target->write(const_buffer(write_.memory), 0s), n != 0);
    }
    void read_now(unsigned n) {
        if (read_.operation || !read_.open()) {
            return;
        }
        read_.memory.resize(size_of(n));
        bool const some = written_ > received_;
        auto const r = read_.target->read(buffer(read_.memory), 0s);
        check(r || r.error() != std::errc::timed_out || lost_ || !some || !prompt_ ||
                  write_.operation || n == 0,
              "what was written can be read");
        note_read(r, n);
    }

    void start_read(unsigned n, bool limited) {
        if (!read_.open() || read_.busy()) {
            return;
        }
        if (read_.operation) {  // used again, with the request that it has
            read_.operation->reset();
        } else {
            read_.memory.resize(size_of(n));
            read_.operation.emplace(
                async_read(*read_.target, buffer(read_.memory), limit(limited, n)),
                telling<io_result<buffers>>{&read_.heard});
        }
        (void)read_.operation->start();
        check(read_.heard.dones == 0, "start tells nobody");
    }
    void start_write(unsigned n, bool limited) {
        if (!write_.open() || write_.busy()) {
            return;
        }
        if (write_.operation) {
            fill(write_.memory.size());
            write_.operation->reset();
        } else {
            fill(size_of(n));
            write_.operation.emplace(
                async_write(*write_.target, const_buffer(write_.memory), limit(limited, n)),
                telling<io_result<const_buffers>>{&write_.heard});
        }
        (void)write_.operation->start();
        check(write_.heard.dones == 0, "start tells nobody");
    }
    static deadline limit(bool limited, unsigned n) noexcept {
        return limited ? deadline(std::chrono::microseconds(n % 8)) : deadline();
    }

    template <class End>
    static void poll(End& e) {
        if (e.operation && e.operation->started()) {
            bool const completed = e.operation->poll() == io_status::completed;
            check(completed == e.operation->completed(), "poll tells whether it is over");
        }
    }
    template <class End>
    void close(End& e) {
        (void)e.target->close();
        closed_ = true;
    }
    template <class End>
    void destroy(End& e) {
        // What it has moved is told to nobody.
        lost_ = lost_ || e.busy();
        e.operation.reset();
        e.heard = {};
    }

    void fill(std::size_t size) {
        write_.memory.resize(size);
        for (std::size_t i = 0; i < size; ++i) {
            write_.memory[i] = value_at(written_ + i);
        }
    }

    void hear() {
        hear_write();
        hear_read();
    }
    void hear_read() {
        if (read_.heard.dones != 0) {
            note_read(*read_.heard.value, static_cast<unsigned>(read_.memory.size()));
            read_.heard = {};
            if (!read_.memory.empty() && read_.memory.size() % 2 == 0) {
                read_.operation.reset();
            }
        }
    }
    void hear_write() {
        if (write_.heard.dones != 0) {
            note_written(*write_.heard.value, !write_.memory.empty());
            write_.heard = {};
            if (write_.memory.size() % 2 == 0) {
                write_.operation.reset();
            }
        }
    }
    void note_read(io_result<buffers> const& r, std::size_t wanted) {
        if (!r) {
            check_expected(r.error());
            return;
        }
        check(r.bytes_transferred() <= read_.memory.size(), "no more is read than was asked for");
        for (buffer const b : *r) {
            check(b.data() >= read_.memory.data() &&
                      b.data() + b.size() <= read_.memory.data() + read_.memory.size(),
                  "bytes are read into the memory that was given");
            for (std::size_t i = 0; i < b.size(); ++i, ++received_) {
                check(lost_ || b.data()[i] == value_at(received_), "bytes come in their order");
            }
        }
        // A write that is in flight may have moved bytes that it has not told of.
        check(lost_ || write_.busy() || received_ <= written_,
              "nothing is read that was not written");
        if (wanted != 0 && r.bytes_transferred() == 0) {
            check(closed_, "there is an end only where one was closed");
            check(lost_ || write_.busy() || received_ == written_,
                  "the end comes behind the bytes");
        }
    }
    void note_written(io_result<const_buffers> const& r, bool any) {
        if (!r) {
            check_expected(r.error());
            return;
        }
        check(r.bytes_transferred() <= write_.memory.size(), "no more is written than was given");
        check(!any || r.bytes_transferred() != 0, "a write moves at least one byte");
        written_ += r.bytes_transferred();
    }
    void check_expected(std::error_code e) {
        if (e == std::errc::timed_out || e == std::errc::operation_canceled) {
            return;
        }
        check(closed_, "only what is closed gives errors");
        check(e == std::errc::broken_pipe || e == std::errc::connection_reset ||
                  e == std::errc::bad_file_descriptor || e == std::errc::not_connected,
              "an error says what has happened");
        // Who closes a connection with bytes unread resets it, and what was under way is gone; the error is told once,
        // to whichever direction asks first.
        lost_ = lost_ || e == std::errc::connection_reset || e == std::errc::broken_pipe;
    }

public:
    /// The other direction of a connection shares its ends.
    void note_closed(bool lost) noexcept {
        closed_ = true;
        lost_ = lost_ || lost;
    }
    [[nodiscard]] bool lost() const noexcept { return lost_; }
    [[nodiscard]] bool closed() const noexcept { return closed_; }

private:
    end<async_write> write_;
    end<async_read> read_;
    std::size_t written_ = 0;
    std::size_t received_ = 0;
    bool const prompt_;    // what was written can be read at once
    bool closed_ = false;  // one of the ends
    bool lost_ =
        false;  // bytes went with a destroyed operation, or a reset: the rest is not compared
};

stream_socket_handle::pair tcp_pair() {
    auto listener = listen_socket_handle::listen(endpoint::loopback_v4(0)).value();
    auto client = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
    client.connect(listener.local().value(), 10s).value();
    return {std::move(client), listener.accept(10s).value()};
}

void play(input& in, io_multiplexer& m, std::uint8_t what) {
    std::vector<direction> all;
    pipe_handle::ends pipe;
    stream_socket_handle::pair sockets;
    bool const real = m.kind() != multiplexer_kind::sim;
    if (what == 0) {
        pipe = pipe_handle::anonymous_pipe().value();
        pipe.reader.set_multiplexer(m);
        pipe.writer.set_multiplexer(m);
        all.emplace_back(pipe.writer, pipe.reader, real);
    } else {
        sockets = what == 1 ? tcp_pair() : stream_socket_handle::socket_pair().value();
        sockets.first.set_multiplexer(m);
        sockets.second.set_multiplexer(m);
        bool const prompt = real && what == 2;
        all.emplace_back(sockets.first, sockets.second, prompt);
        all.emplace_back(sockets.second, sockets.first, prompt);
    }
    for (int steps = 0; steps < 200 && !in.empty(); ++steps) {
        auto const op = in.take<std::uint8_t>();
        direction& d = all[(op >> 4) % all.size()];
        d.step(op % 16, in.take<std::uint8_t>(), m);
        if (d.closed()) {
            for (direction& other : all) {
                other.note_closed(d.lost());
            }
        }
    }
    if (in.take<std::uint8_t>() % 2 == 0) {
        for (direction& d : all) {
            d.finish(m);
        }
        check(m.try_run().value() == 0, "nothing is left");
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    input in(data, size);
    constexpr std::array kinds{multiplexer_kind::sim, multiplexer_kind::epoll,
                               multiplexer_kind::io_uring};
    auto const setting = in.take<std::uint8_t>();
    auto const kind = kinds[setting % kinds.size()];
    std::optional<sim::world> world;
    if (kind == multiplexer_kind::sim) {
        sim::world::options o;
        o.short_transfers = setting >= 128;
        world.emplace(setting, o);
    }
    auto const m = io_multiplexer::make(kind);
    if (m) {  // some systems refuse the ring
        play(in, **m, setting / 3 % 3);
    }
    return 0;
}
