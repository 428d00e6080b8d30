// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffers.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace plumb {

/// A position in a file, or the size of one, in bytes.
using extent_type = std::uint64_t;

/// What to read into or to write from, and where in the file. Made from whatever makes a list of
/// buffers: `read(buffer)`, `read({data, size})`, `read({list, offset})`, `write(text)`, ...
/// Threads: as a value. Allocates: never. Source: D2052R0 4.1.
template <class Buffers>
struct io_request {
    /// No position; what pipes and sockets are given, and ignore.
    static constexpr extent_type no_offset = static_cast<extent_type>(-1);

    Buffers buffers;
    extent_type offset = no_offset;

    constexpr io_request() noexcept = default;
    constexpr io_request(Buffers list, extent_type at = no_offset) noexcept
        : buffers(list), offset(at) {}

    template <class T>
        requires(std::convertible_to<T, Buffers> &&
                 !std::same_as<std::remove_cvref_t<T>, Buffers> &&
                 !std::same_as<std::remove_cvref_t<T>, io_request>)
    constexpr io_request(T&& from) noexcept : buffers(std::forward<T>(from)) {}

    /// `size` bytes at `data`, nowhere in particular: an array and a number are no offset either.
    template <class T>
        requires std::constructible_from<typename Buffers::value_type, T*, std::size_t>
    constexpr io_request(T* data, std::size_t size) noexcept : buffers(data, size) {}
};

static_assert(sizeof(io_request<buffers>) == 32 && sizeof(io_request<const_buffers>) == 32);
static_assert(std::is_trivially_copyable_v<io_request<buffers>>);

}  // namespace plumb
