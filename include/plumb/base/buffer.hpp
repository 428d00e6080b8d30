// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

namespace plumb {

/// Elements that are bytes as they are.
template <class T>
concept byte_like =
    std::same_as<T, std::byte> || std::same_as<T, char> || std::same_as<T, unsigned char> ||
    std::same_as<T, signed char> || std::same_as<T, char8_t>;

/// Memory that holds bytes in a row. String literals don't count: their null would be one of the
/// bytes. `std::string_view` does without it.
template <class R>
concept byte_range =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    byte_like<std::ranges::range_value_t<R>> &&
    !std::is_same_v<std::remove_extent_t<std::remove_reference_t<R>>, char const> &&
    !std::is_same_v<std::remove_extent_t<std::remove_reference_t<R>>, char8_t const>;

/// The same that outlives the expression and may be written to.
template <class R>
concept writable_byte_range =
    byte_range<R> && std::ranges::borrowed_range<R> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Bytes of somebody else, to be drained by a write: a pointer and a size, laid out as the
/// platform's scatter-gather element, so that arrays of it go to the kernel as they are.
/// Threads: as a value. Allocates: never. Source: D2052R0 4.1.
class const_buffer {
public:
    constexpr const_buffer() noexcept = default;
    constexpr const_buffer(void const* data, std::size_t size) noexcept
        : data_(data), size_(size) {}
    /// An array of buffers is a list, see `buffers`.
    template <std::derived_from<const_buffer> B>
    const_buffer(B const* array, std::size_t count) = delete;

    /// All of a string, an array, a vector, a span, ... which must outlive this.
    template <byte_range R>
        requires(!std::derived_from<std::remove_cvref_t<R>, const_buffer>)
    constexpr const_buffer(R&& bytes) noexcept
        : const_buffer(std::ranges::data(bytes), std::ranges::size(bytes)) {}

    [[nodiscard]] std::byte const* data() const noexcept {
        return static_cast<std::byte const*>(data_);
    }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::byte const* begin() const noexcept { return data(); }
    [[nodiscard]] std::byte const* end() const noexcept { return data() + size_; }

    /// The first `n` bytes, or all where there are fewer.
    [[nodiscard]] constexpr const_buffer first(std::size_t n) const noexcept {
        return {data_, std::min(n, size_)};
    }
    /// All but the first `n` bytes, or none where there are fewer.
    [[nodiscard]] const_buffer skip(std::size_t n) const noexcept {
        n = std::min(n, size_);
        return {data() + n, size_ - n};
    }
    /// Leaves out the first `n` bytes.
    const_buffer& operator+=(std::size_t n) noexcept { return *this = skip(n); }

private:
    friend class buffer;
    friend struct layout_check;  // asserts that this is the platform's element

    void const* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Bytes of somebody else, to be filled by a read. Otherwise as `const_buffer`, and usable as one.
class buffer : public const_buffer {
public:
    constexpr buffer() noexcept = default;
    constexpr buffer(void* data, std::size_t size) noexcept : const_buffer(data, size) {}
    template <std::derived_from<const_buffer> B>
    buffer(B const* array, std::size_t count) = delete;

    template <writable_byte_range R>
        requires(!std::derived_from<std::remove_cvref_t<R>, const_buffer>)
    constexpr buffer(R&& bytes) noexcept
        : buffer(std::ranges::data(bytes), std::ranges::size(bytes)) {}

    // Made from memory that may be written to.
    [[nodiscard]] std::byte* data() const noexcept {
        return static_cast<std::byte*>(const_cast<void*>(data_));
    }
    [[nodiscard]] std::byte* begin() const noexcept { return data(); }
    [[nodiscard]] std::byte* end() const noexcept { return data() + size_; }

    [[nodiscard]] buffer first(std::size_t n) const noexcept {
        return {data(), std::min(n, size_)};
    }
    [[nodiscard]] buffer skip(std::size_t n) const noexcept {
        n = std::min(n, size_);
        return {data() + n, size_ - n};
    }
    buffer& operator+=(std::size_t n) noexcept { return *this = skip(n); }
};

static_assert(sizeof(const_buffer) == sizeof(void*) + sizeof(std::size_t) &&
              sizeof(buffer) == sizeof(const_buffer));
static_assert(std::is_standard_layout_v<buffer> && std::is_standard_layout_v<const_buffer>);
static_assert(std::is_trivially_copyable_v<buffer> && std::is_trivially_copyable_v<const_buffer>);

}  // namespace plumb

template <>
inline constexpr bool std::ranges::enable_borrowed_range<plumb::buffer> = true;
template <>
inline constexpr bool std::ranges::enable_borrowed_range<plumb::const_buffer> = true;
