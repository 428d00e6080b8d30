// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffer.hpp>

#include "sim/byte_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace plumb::sim {

template <class Buffer>
[[nodiscard]] std::size_t total_of(std::span<Buffer const> list) noexcept {
    std::size_t total = 0;
    for (Buffer const& b : list) {
        total += b.size();
    }
    return total;
}

/// Moves the first `n` bytes of the queue to the buffers, which have room for them.
inline void scatter(byte_queue& from, std::span<buffer const> to, std::size_t n) noexcept {
    for (buffer const& b : to) {
        n -= from.pop({b.data(), std::min(b.size(), n)});
    }
}

/// @return a copy of the bytes
[[nodiscard]] inline std::vector<std::byte> gathered(std::span<const_buffer const> from) {
    std::vector<std::byte> all;
    all.reserve(total_of(from));
    for (const_buffer const& b : from) {
        all.insert(all.end(), b.begin(), b.end());
    }
    return all;
}

/// Copies the first `n` bytes of the buffers to the queue.
inline void gather(byte_queue& to, std::span<const_buffer const> from, std::size_t n) {
    for (const_buffer const& b : from) {
        auto const part = b.first(n);
        to.push({part.data(), part.size()});
        n -= part.size();
    }
}

}  // namespace plumb::sim
