// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffers.hpp>
#include <plumb/base/result.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace plumb {

/// The buffers that were filled or drained, or the error. They need not be those of the request;
/// 0 bytes of a request for some are the end of the stream. Otherwise as `result`.
/// Source: D2052R0 4.1.
template <class Buffers>
class [[nodiscard]] io_result : public result<Buffers> {
public:
    using result<Buffers>::result;
    io_result(result<Buffers> r) noexcept : result<Buffers>(std::move(r)) {}

    /// How many bytes were moved; 0 when it failed.
    [[nodiscard]] std::size_t bytes_transferred() const noexcept {
        return this->has_value() ? (*this)->bytes() : 0;
    }
};

static_assert(sizeof(io_result<buffers>) == 32);
static_assert(std::is_trivially_copy_constructible_v<io_result<buffers>> &&
              std::is_trivially_destructible_v<io_result<buffers>>);

}  // namespace plumb
