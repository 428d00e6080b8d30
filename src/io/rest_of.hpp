// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/io_backend.hpp"

#include <algorithm>
#include <cstddef>

namespace plumb {

/// Of a list of buffers what comes behind the first bytes, as much of it as one call takes. A buffer that those bytes
/// end in is a part by itself, because the caller's array is not changed. At least one byte is left.
template <class Buffers>
class rest_of {
public:
    using buffer_type = typename Buffers::value_type;

    rest_of(Buffers const& list, std::size_t moved) noexcept
        : array_(list.native_array()), count_(list.native_count()) {
        for (; moved >= array_->size(); --count_) {
            moved -= array_->size();
            ++array_;
        }
        if (moved != 0) {
            one_ = array_->skip(moved);
            count_ = 1;
        }
        count_ = std::min(count_, platform::most_buffers);
    }
    rest_of(rest_of const&) = delete;
    rest_of& operator=(rest_of const&) = delete;

    /// Of several the caller's own, which live as long as the operation.
    [[nodiscard]] buffer_type const* array() const noexcept {
        return one_.empty() ? array_ : &one_;
    }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            sum += array()[i].size();
        }
        return sum;
    }

private:
    buffer_type const* array_;
    std::size_t count_;
    buffer_type one_;
};

}  // namespace plumb
