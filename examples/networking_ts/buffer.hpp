// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffer.hpp>
#include <plumb/base/buffers.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

namespace networking_ts {

using mutable_buffer = plumb::buffer;
using const_buffer = plumb::const_buffer;

inline mutable_buffer buffer(mutable_buffer b) noexcept { return b; }
inline const_buffer buffer(const_buffer b) noexcept { return b; }
inline mutable_buffer buffer(void* data, std::size_t n) noexcept { return {data, n}; }
inline const_buffer buffer(void const* data, std::size_t n) noexcept { return {data, n}; }

/// All of an array, a vector, a string, ...; to be written to where its elements are.
template <class R>
    requires(plumb::byte_range<R> && !std::derived_from<std::remove_cvref_t<R>, const_buffer>)
auto buffer(R& bytes) noexcept {
    return buffer(std::ranges::data(bytes), std::ranges::size(bytes));
}
template <class R>
    requires requires(R& bytes) { networking_ts::buffer(bytes); }
auto buffer(R& bytes, std::size_t most) noexcept {
    return buffer(bytes).first(most);
}

/// One buffer, or a range of them.
template <class S, class Buffer>
concept buffer_sequence = std::derived_from<S, Buffer> ||
                          (std::ranges::input_range<S const> &&
                           std::derived_from<std::ranges::range_value_t<S const>, Buffer>);
template <class S>
concept mutable_buffer_sequence = buffer_sequence<S, mutable_buffer>;
template <class S>
concept const_buffer_sequence = buffer_sequence<S, const_buffer>;

/// Calls `f` with each buffer.
template <class Buffer, buffer_sequence<Buffer> S, class F>
void for_each_buffer(S const& sequence, F f) {
    if constexpr (std::derived_from<S, Buffer>) {
        f(Buffer(sequence));
    } else {
        for (Buffer const b : sequence) {
            f(b);
        }
    }
}

template <const_buffer_sequence S>
std::size_t buffer_size(S const& sequence) {
    std::size_t size = 0;
    for_each_buffer<const_buffer>(sequence, [&](const_buffer b) { size += b.size(); });
    return size;
}

/// The buffers of any sequence behind its first `skipped` bytes, in an array that plumb can hand on: at most 16 of
/// them, since an operation may always move less than it was asked to.
template <class Buffer>
class gathered {
public:
    template <buffer_sequence<Buffer> S>
    explicit gathered(S const& sequence, std::size_t skipped = 0,
                      std::size_t most = std::numeric_limits<std::size_t>::max()) {
        for_each_buffer<Buffer>(sequence, [&](Buffer b) {
            Buffer const rest = b.skip(skipped).first(most);
            skipped -= std::min(skipped, b.size());
            most -= rest.size();
            if (!rest.empty() && count_ < array_.size()) {
                array_[count_++] = rest;
            }
        });
    }
    [[nodiscard]] Buffer const* begin() const noexcept { return array_.data(); }
    [[nodiscard]] Buffer const* end() const noexcept { return begin() + count_; }

    /// A view of this object.
    [[nodiscard]] plumb::basic_buffers<Buffer> view() const noexcept { return {begin(), count_}; }

private:
    std::array<Buffer, 16> array_;
    std::size_t count_ = 0;
};

/// A string or a vector of bytes that grows at its end and shrinks at its front.
template <class Container>
class dynamic_container_buffer {
public:
    explicit dynamic_container_buffer(Container& bytes, std::size_t most) noexcept
        : bytes_(&bytes), size_(bytes.size()), most_(most) {}

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t max_size() const noexcept { return most_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return bytes_->capacity(); }
    [[nodiscard]] const_buffer data() const noexcept { return {bytes_->data(), size_}; }

    /// Makes room for `n` bytes behind those that are there.
    mutable_buffer prepare(std::size_t n) {
        bytes_->resize(size_ + n);
        return {bytes_->data() + size_, n};
    }
    /// The first `n` bytes of that room are there now; the rest of it is no more.
    void commit(std::size_t n) {
        size_ = std::min(size_ + n, bytes_->size());
        bytes_->resize(size_);
    }
    void consume(std::size_t n) {
        auto const first = bytes_->begin();
        bytes_->erase(first, first + static_cast<std::ptrdiff_t>(std::min(n, size_)));
        size_ = bytes_->size();
    }

private:
    Container* bytes_;
    std::size_t size_;
    std::size_t most_;
};

template <class Container>
    requires plumb::byte_range<Container&>
auto dynamic_buffer(Container& bytes,
                    std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept {
    return dynamic_container_buffer<Container>(bytes, most);
}

}  // namespace networking_ts
