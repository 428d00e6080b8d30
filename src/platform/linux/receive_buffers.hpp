// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/linux/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace plumb::platform {

/// Bytes that wait in buffers, in order.
struct parked_bytes {
    std::uint16_t first = 0;  // valid where there is one
    std::uint16_t last = 0;
    std::uint16_t count = 0;  // of buffers
};

/// The buffers from which the kernel picks one when data has come. Each is at any time with the kernel or
/// parked; what the kernel filled is recycled or parked before the loop goes on.
class receive_buffers {
public:
    static constexpr unsigned count = 512;  // a power of two
    static constexpr unsigned size = 2048;
    static constexpr std::uint16_t group = 0;

    receive_buffers() noexcept = default;
    receive_buffers(receive_buffers const&) = delete;
    receive_buffers& operator=(receive_buffers const&) = delete;
    ~receive_buffers();

    [[nodiscard]] bool available() const noexcept { return available_; }

    /// Hands all that aren't parked to this ring; the memory is had at the first time.
    /// What fails makes them unavailable.
    void join(ring& r) noexcept;

    [[nodiscard]] std::byte* data(std::uint16_t id) const noexcept {
        return bytes_ + std::size_t{id} * stride;
    }

    /// The kernel may fill it again.
    void recycle(std::uint16_t id) noexcept {
        io_uring_buf& entry = entries_[tail_ & mask];
        entry.addr = reinterpret_cast<std::uintptr_t>(data(id));
        entry.len = size;
        entry.bid = id;
        publish(static_cast<std::uint16_t>(tail_ + 1));
    }

    /// Keeps what the kernel put in [begin, end) of a buffer behind what is there.
    void park(parked_bytes& queue, std::uint16_t id, std::size_t begin, std::size_t end) noexcept;
    [[nodiscard]] std::span<std::byte const> front(parked_bytes const& queue) const noexcept;
    /// Drops the first bytes, at most `front`'s.
    void drop_front(parked_bytes& queue, std::size_t bytes) noexcept;
    void drop_all(parked_bytes& queue) noexcept;

private:
    // Not a power of two: the first lines of all buffers, which hold most messages, spread over the whole cache.
    static constexpr std::size_t stride = size + 64;
    static constexpr std::uint16_t mask = count - 1;
    static constexpr std::size_t entries_size = count * sizeof(io_uring_buf);

    struct extent {
        std::uint16_t next;
        std::uint16_t begin;
        std::uint16_t end;  // 0 unless parked
    };

    bool map() noexcept;

    /// The ring's tail lies in what its first entry reserves.
    void publish(std::uint16_t tail) noexcept {
        tail_ = tail;
        io_uring_smp_store_release(&entries_[0].resv, tail);
    }

    io_uring_buf* entries_ = nullptr;  // a ring that is shared with the kernel
    std::byte* bytes_ = nullptr;
    std::uint16_t tail_ = 0;
    bool available_ = false;
    extent extents_[count]{};
};

}  // namespace plumb::platform
