// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/base/buffer.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <ranges>
#include <type_traits>
#include <utility>

namespace plumb {

/// Memory that holds buffers in a row, and outlives the expression: an array, a vector, a span, ...
template <class R, class Buffer>
concept buffer_range =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && std::derived_from<std::ranges::range_value_t<R>, Buffer> &&
    !std::same_as<std::remove_cvref_t<R>, std::initializer_list<std::ranges::range_value_t<R>>>;

/// A list of buffers as a value: one buffer, or a view of the caller's array, which is never
/// modified and must outlive this. A list may end inside of a buffer: what is iterated then ends
/// with a shorter one. So the part that was filled needs no copy of the array.
///
/// Holds 3 words; copying it copies no bytes. Empty buffers at either end don't count.
/// Threads: as a value. Allocates: never. Source: D2052R0 4.1.
template <class Buffer>
class basic_buffers {
public:
    class iterator;
    using value_type = Buffer;

    /// No buffer.
    constexpr basic_buffers() noexcept = default;

    /// One buffer, or whatever makes one.
    template <class T>
        requires(std::convertible_to<T, Buffer> &&
                 !std::same_as<std::remove_cvref_t<T>, basic_buffers>)
    constexpr basic_buffers(T&& one) noexcept : one_(std::forward<T>(one)) {}
    template <class T>
        requires std::constructible_from<Buffer, T*, std::size_t>
    constexpr basic_buffers(T* data, std::size_t size) noexcept : one_(data, size) {}

    /// The caller's array.
    template <buffer_range<Buffer> R>
        requires(!std::convertible_to<R, Buffer>)
    basic_buffers(R&& array) noexcept
        : basic_buffers(std::ranges::data(array), std::ranges::size(array)) {}
    basic_buffers(Buffer const* array, std::size_t count) noexcept { view(array, count, all); }

    /// What was read can be written.
    template <std::same_as<buffer> Filled>
        requires std::same_as<Buffer, const_buffer>
    constexpr basic_buffers(basic_buffers<Filled> const& filled) noexcept
        : one_(filled.one_), count_(filled.count_) {}

    /// How many bytes there are in all.
    [[nodiscard]] constexpr std::size_t bytes() const noexcept { return one_.size(); }
    [[nodiscard]] constexpr bool empty() const noexcept { return bytes() == 0; }

    /// Whether the bytes lie in one buffer, or there are none.
    [[nodiscard]] constexpr bool is_single() const noexcept { return count_ == 0; }

    /// The buffer, where there is one at most.
    [[nodiscard]] Buffer const& single() const noexcept {
        PLUMB_ASSERT(is_single());
        return one_;
    }

    /// How many buffers hold these bytes.
    [[nodiscard]] constexpr std::size_t size() const noexcept {
        return count_ != 0 ? count_ : static_cast<std::size_t>(!empty());
    }

    /// Costs O(size()) for the last of several.
    [[nodiscard]] Buffer operator[](std::size_t i) const noexcept {
        PLUMB_ASSERT(i < size());
        if (count_ == 0) {
            return one_;
        }
        return i + 1 < count_ ? array()[i] : array()[i].first(array()[i].size() - trim_last());
    }
    [[nodiscard]] iterator begin() const noexcept {
        return count_ == 0 ? iterator(&one_, one_, bytes()) : iterator(array(), *array(), bytes());
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /// The first `n` bytes of this list, or all where there are fewer.
    [[nodiscard]] basic_buffers first(std::size_t n) const noexcept {
        if (count_ != 0) [[unlikely]] {
            return first_of_array(n);
        }
        basic_buffers result;
        result.one_ = one_.first(n);
        return result;
    }

    /// By how many bytes the last buffer in the array is longer than the last one of this list.
    [[nodiscard]] std::size_t trim_last() const noexcept {
        std::size_t in_array = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            in_array += array()[i].size();
        }
        return count_ != 0 ? in_array - bytes() : 0;
    }

    /// The longest start of this list that an array holds as it is, for i/o of some of the bytes:
    /// all but the last buffer when that one is trimmed, else all.
    [[nodiscard]] basic_buffers untrimmed() const noexcept {
        auto const trim = trim_last();
        return trim == 0 ? *this : first(bytes() - (array()[count_ - 1].size() - trim));
    }

    /// An untrimmed list as the platform's scatter-gather array. A single buffer lies in this
    /// object, which must outlive the i/o then.
    [[nodiscard]] Buffer const* native_array() const noexcept {
        PLUMB_ASSERT(trim_last() == 0);
        return count_ == 0 ? &one_ : array();
    }
    [[nodiscard]] std::size_t native_count() const noexcept { return count_ == 0 ? 1 : count_; }

private:
    template <class>
    friend class basic_buffers;

    // Out of line: a list of one, the common case, stays small where it is inlined.
    [[nodiscard, gnu::noinline]] basic_buffers first_of_array(std::size_t n) const noexcept {
        basic_buffers result;
        result.view(array(), count_, std::min(n, bytes()));
        return result;
    }

    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    /// Makes this the first `limit` bytes of an array.
    void view(Buffer const* array, std::size_t count, std::size_t limit) noexcept {
        for (; count != 0 && array->empty(); --count) {
            ++array;
        }
        std::size_t total = 0;
        std::size_t used = 0;
        for (std::size_t i = 0; i < count && total < limit; ++i) {
            if (!array[i].empty()) {
                total += std::min(array[i].size(), limit - total);
                used = i + 1;
            }
        }
        if (used <= 1) {
            one_ = used == 0 ? Buffer() : array->first(limit);
            count_ = 0;
        } else {
            one_ = Buffer(const_cast<void*>(static_cast<void const*>(array)), total);
            count_ = used;
        }
    }
    [[nodiscard]] Buffer const* array() const noexcept {
        return static_cast<Buffer const*>(static_cast<void const*>(one_.data()));
    }

    // Several buffers start and, before they are trimmed, end with one that isn't empty.
    Buffer one_;             // the buffer; for several the address of their array, and all bytes
    std::size_t count_ = 0;  // of buffers in the array; 0 where there is at most one
};

/// Gives buffers by value, the last one trimmed.
template <class Buffer>
class basic_buffers<Buffer>::iterator {
public:
    using value_type = Buffer;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;

    [[nodiscard]] Buffer operator*() const noexcept { return now_; }
    iterator& operator++() noexcept {
        left_ -= now_.size();
        ++place_;
        if (left_ != 0) {
            now_ = place_->first(left_);
        }
        return *this;
    }
    iterator operator++(int) noexcept {
        auto const before = *this;
        ++*this;
        return before;
    }

    friend bool operator==(iterator const& a, iterator const& b) noexcept {
        return a.place_ == b.place_;
    }
    friend bool operator==(iterator const& i, std::default_sentinel_t) noexcept {
        return i.left_ == 0;
    }

private:
    friend basic_buffers;
    iterator(Buffer const* place, Buffer const& now, std::size_t left) noexcept
        : place_(place), now_(now.first(left)), left_(left) {}

    Buffer const* place_ = nullptr;  // not looked at for the first and only one
    Buffer now_;
    std::size_t left_ = 0;
};

/// To be filled by a read.
using buffers = basic_buffers<buffer>;
/// To be drained by a write.
using const_buffers = basic_buffers<const_buffer>;

static_assert(sizeof(buffers) == 3 * sizeof(void*) && sizeof(const_buffers) == sizeof(buffers));
static_assert(std::is_trivially_copyable_v<buffers> && std::is_trivially_copyable_v<const_buffers>);

}  // namespace plumb
