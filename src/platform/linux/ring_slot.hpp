// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/handle.hpp>

#include "platform/linux/receive_buffers.hpp"

#include <cerrno>
#include <cstdint>

namespace plumb::platform {

/// What the kernel has of one direction of a handle; at most one, and at most one operation waits for it.
///
///   none      nothing
///   read      reads into, or writes from, the operation's own buffers, which it holds until the
///   write     completion: the operation ends there, also when it was cancelled
///   receive   reads into one of the provided buffers, once or (multishot) until something ends it;
///             the operation may leave: what then arrives is parked, and the next read takes it
///   zero_copy writes from the operation's buffer, which it may hold beyond the operation's end, under a number of its
///             own: see `held_writes`
///   poll_in   waits for readiness, then the operation is tried; it may leave
///   poll_out
///   wake      no direction's: waits for `wake`
///   clock     the same: waits for the system clock to be set
///   file      no direction's: a part of an operation on a file, of which there may be many; named
///             not by the key of the slot, but by that of a file_request
///
/// none -> any when an operation needs it, any -> none by the request's last completion, which also
/// gives the slot of a closed handle back. So a completion never finds its slot in another use.
enum class request : std::uint8_t {
    none,
    read,
    write,
    receive,
    zero_copy,
    poll_in,
    poll_out,
    wake,
    clock,
    file
};

/// A completion names its request by this and the key of the slot.
constexpr std::uint64_t user_data_of(request r) noexcept {
    return static_cast<std::uint64_t>(r) << 56;
}
constexpr request request_of(std::uint64_t user_data) noexcept {
    return static_cast<request>(user_data >> 56);
}

struct ring_slot : handle_slot {
    struct direction {
        request in_kernel = request::none;
        bool cancelling = false;  // the kernel was asked to end it
    };
    static constexpr std::int32_t nothing = -EAGAIN;

    std::uint64_t key = 0;
    direction in;
    direction out;
    /// The handle is closed, or the backend ends: what the kernel has is only waited for.
    bool over = false;
    bool closed = false;
    /// The ring doesn't wait for this descriptor, or can't write to it quietly: poll, then try.
    bool by_poll = false;
    bool sends = false;  // one buffer goes to it by a send
    bool connecting = false;
    bool copies = false;           // the system can't write from the caller's buffer
    std::uint16_t held_write = 0;  // of the zero-copy request
    /// Reads by the ring in succession that each brought a message, up to a few.
    std::uint8_t messages = 0;
    parked_bytes parked;
    /// What comes behind the parked bytes: 0 for the end of the stream, or minus an error.
    std::int32_t parked_end = nothing;

    [[nodiscard]] bool has_parked() const noexcept {
        return parked.count != 0 || parked_end != nothing;
    }
    [[nodiscard]] direction& side(bool reading) noexcept { return reading ? in : out; }
    [[nodiscard]] io_operation*& waiting(bool reading) noexcept {
        return reading ? reader : writer;
    }
};

}  // namespace plumb::platform
