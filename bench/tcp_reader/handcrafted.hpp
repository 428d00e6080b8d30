// SPDX-License-Identifier: Apache-2.0
//
// What the hand-crafted state machines share: a connection on plumb's senders, whose completions are told to handlers.
#pragma once

#include "tcp_reader.h"

#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include <memory>
#include <system_error>
#include <utility>

/// An operation whose end is told to a handler, and that frees itself then.
template <class Sender>
class overlapped {
public:
    using result = typename Sender::result_type;

    explicit overlapped(Sender const& sender) : connection_(sender, receiver{this}) {}
    virtual ~overlapped() = default;

    /// Begins it, and leaves it to itself; its end comes through the queue.
    static void start(std::unique_ptr<overlapped> self) {
        (void)self.release()->connection_.start();
    }

    /// Begins it. @return the result where it is over at once; else null, and it is left to itself
    static result const* start_or_take(std::unique_ptr<overlapped>& self) {
        if (self->connection_.start() == plumb::io_status::pending) {
            (void)self.release();
            return nullptr;
        }
        self->taken_ = true;
        (void)self->connection_.poll();
        return &self->result_;
    }

private:
    struct receiver {
        overlapped* self;
        void set_value(result&& r) const noexcept { self->result_ = std::move(r); }
        void set_done() const noexcept {
            if (!self->taken_) {
                std::unique_ptr<overlapped> const me(self);
                me->invoke(me->result_);
            }
        }
    };

    virtual void invoke(result const& r) = 0;

    result result_;
    bool taken_ = false;
    plumb::io_operation_connection<Sender, receiver> connection_;
};

template <class Sender, class Handler>
class completion final : public overlapped<Sender>, private Handler {
public:
    completion(Sender const& sender, Handler handler)
        : overlapped<Sender>(sender), Handler(std::move(handler)) {}

private:
    void invoke(typename Sender::result_type const& r) override { Handler::operator()(r); }
};

template <class Sender, class Handler>
std::unique_ptr<overlapped<Sender>> make_overlapped(Sender const& sender, Handler handler) {
    return std::make_unique<completion<Sender, Handler>>(sender, std::move(handler));
}

using read_result = plumb::io_result<plumb::buffers>;

class connection {
public:
    template <class Handler>
    void connect(std::uint16_t port, Handler handler) {
        auto made = plumb::stream_socket_handle::stream_socket(plumb::endpoint::family_type::ipv4);
        if (!made) {
            reader_fail("socket", made.error().message().c_str());
        }
        socket_ = std::move(*made);
        plumb::async_connect const sender(socket_, plumb::endpoint::loopback_v4(port));
        overlapped<plumb::async_connect>::start(make_overlapped(sender, std::move(handler)));
    }

    /// The handler is called through the queue.
    template <class Handler>
    void read(std::byte* to, std::size_t most, Handler handler) {
        plumb::async_read const sender(socket_, plumb::buffers(to, most));
        overlapped<plumb::async_read>::start(make_overlapped(sender, std::move(handler)));
    }

    /// The handler is called through the queue, unless it is over at once.
    /// @param got  is set then
    /// @return whether it is over at once
    template <class Handler>
    bool read(std::byte* to, std::size_t most, read_result& got, Handler handler) {
        plumb::async_read const sender(socket_, plumb::buffers(to, most));
        auto operation = make_overlapped(sender, std::move(handler));
        read_result const* const taken = overlapped<plumb::async_read>::start_or_take(operation);
        if (taken == nullptr) {
            return false;
        }
        got = *taken;
        return true;
    }

    plumb::stream_socket_handle& socket() { return socket_; }

private:
    plumb::stream_socket_handle socket_;
};

/// A state machine: connects, reads to the end, reports and deletes itself.
/// @tparam Self  the machine; its `begin` starts the first read
template <class Self>
class machine {
public:
    static void start(reader_options const& o) {
        auto p = std::make_unique<Self>(o);
        p->connection_.connect(o.port, [raw = p.get()](auto const& r) { raw->on_connect(r); });
        (void)p.release();
    }

    inline static int exit_status = 1;

protected:
    explicit machine(reader_options const& o) : options_(o) {}
    ~machine() = default;

    void on_error(std::error_code error) {
        std::unique_ptr<Self> const me(static_cast<Self*>(this));
        std::fprintf(stderr, "tcp_reader: %s\n", error.message().c_str());
    }

    void on_complete() {
        std::unique_ptr<Self> const me(static_cast<Self*>(this));
        exit_status = reader_report(&meter_);
    }

    reader_options options_;
    reader_meter meter_{};
    connection connection_;
    std::byte buffer_[reader_most_block];

private:
    void on_connect(plumb::result<void> const& r) {
        if (!r) {
            return on_error(r.error());
        }
        meter_ = reader_begin(&options_);
        static_cast<Self*>(this)->begin();
    }
};

/// Runs a machine to its end.
/// @return the exit status
template <class Machine>
int run_machine(int argc, char** argv) {
    Machine::start(reader_parse_options(argc, argv));
    while (plumb::io_multiplexer::this_thread().run().value() != 0) {
    }
    return Machine::exit_status;
}
