// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_operation.hpp>

#include <concepts>
#include <utility>

namespace plumb {

/// Who is told of an operation: its result once, then once that the state may be reused or destroyed.
/// Both are called on the multiplexer's thread, by `poll` or the multiplexer, never by `start`.
template <class R, class Sender>
concept receiver_of =
    std::move_constructible<R> && requires(R r, typename Sender::result_type&& result) {
        { r.set_value(std::move(result)) } noexcept;
        { r.set_done() } noexcept;
    };

/// An operation and its receiver: what `connect` returns. Owns all the memory that the operation uses.
///
/// Movable until `start`, then pinned until `set_done`. Every started operation gets `set_value`, then exactly one
/// `set_done`, unless it is destroyed before, which cancels it and waits for the kernel to let go of its buffers.
/// Threads: the multiplexer's. Allocates: never; beside epoll, the first start on a file makes the threads that help.
/// Source: D2052R0 4.3.
template <class Sender, receiver_of<Sender> Receiver>
class [[nodiscard]] io_operation_connection : private Sender::operation {
public:
    io_operation_connection(Sender const& sender, Receiver receiver) noexcept
        : Sender::operation(sender, &io_operation_connection::deliver),
          receiver_(std::move(receiver)) {}

    io_operation_connection(io_operation_connection&& idle) noexcept = default;

    /// Begins it. Never calls the receiver: what completes at once is delivered by `poll` or the multiplexer.
    io_status start() noexcept { return this->start_queued(); }

    /// Does the i/o if it is ready, or ends it if its deadline is over, and tells the receiver.
    /// Deterministic apart from the receiver: at most one system call.
    /// @return `completed` once the receiver was told; the connection may be gone then if the receiver saw to it
    io_status poll() noexcept { return this->poll_now(); }

    using Sender::operation::cancel;
    using Sender::operation::completed;
    using Sender::operation::started;

    /// Makes a completed connection ready to be started again.
    void reset() noexcept { this->rearm(); }

    [[nodiscard]] Receiver& receiver() noexcept { return receiver_; }

private:
    static void deliver(io_operation& over) noexcept {
        auto& self =
            static_cast<io_operation_connection&>(static_cast<typename Sender::operation&>(over));
        bool const held = self.held();
        if (self.first_delivery()) {
            self.receiver_.set_value(self.result());
        }
        if (held) {
            return;
        }
        self.receiver_.set_done();
    }

    Receiver receiver_;
};

/// Connects a sender with a receiver; nothing begins before `start`.
template <class Sender, class Receiver>
io_operation_connection<Sender, Receiver> connect(Sender const& sender,
                                                  Receiver receiver) noexcept {
    return io_operation_connection<Sender, Receiver>(sender, std::move(receiver));
}

}  // namespace plumb
