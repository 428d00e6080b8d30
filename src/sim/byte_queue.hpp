// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace plumb::sim {

/// Bytes on their way, first in, first out.
class byte_queue {
public:
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() - begin_; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    void push(std::span<std::byte const> more) {
        if (begin_ > bytes_.size() / 2) {
            bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_));
            begin_ = 0;
        }
        bytes_.insert(bytes_.end(), more.begin(), more.end());
    }

    /// @return how many bytes were moved to `out`
    std::size_t pop(std::span<std::byte> out) noexcept {
        auto const n = std::min(out.size(), size());
        if (n != 0) {
            std::memcpy(out.data(), bytes_.data() + begin_, n);
            begin_ += n;
        }
        return n;
    }

private:
    std::vector<std::byte> bytes_;
    std::size_t begin_ = 0;
};

}  // namespace plumb::sim
