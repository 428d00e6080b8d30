// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffer.hpp>
#include <plumb/exec/pooled_memory.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace plumb {

/// Owns bytes in pooled memory: taken when there is data, recycled when dropped. Move-only.
/// Threads: one at a time; may be dropped on another thread than it was made on.
class pooled_buffer {
public:
    constexpr pooled_buffer() noexcept = default;

    /// Room for `capacity` bytes, with nothing in it; one with no capacity where there is no memory.
    static pooled_buffer with_capacity(std::size_t capacity) noexcept {
        pooled_buffer made;
        if (capacity != 0) {
            made.data_ = static_cast<std::byte*>(pooled_allocate(capacity));
            made.capacity_ = made.data_ != nullptr ? capacity : 0;
        }
        return made;
    }

    /// Takes a block of `pooled_allocate(capacity)`, `size` bytes of which are filled.
    static pooled_buffer adopt(std::byte* block, std::size_t capacity, std::size_t size) noexcept {
        pooled_buffer made;
        made.data_ = block;
        made.capacity_ = capacity;
        made.end_ = size;
        return made;
    }

    pooled_buffer(pooled_buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          capacity_(std::exchange(other.capacity_, 0)),
          begin_(std::exchange(other.begin_, 0)),
          end_(std::exchange(other.end_, 0)) {}
    pooled_buffer& operator=(pooled_buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(capacity_, other.capacity_);
        std::swap(begin_, other.begin_);
        std::swap(end_, other.end_);
        return *this;
    }
    ~pooled_buffer() {
        if (data_ != nullptr) {
            pooled_deallocate(data_, capacity_);
        }
    }

    [[nodiscard]] std::byte* data() noexcept { return data_ + begin_; }
    [[nodiscard]] std::byte const* data() const noexcept { return data_ + begin_; }
    [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    /// Whether there is anything in it, as in `while (auto data = co_await s.read(n))`.
    [[nodiscard]] explicit operator bool() const noexcept { return !empty(); }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::byte* begin() noexcept { return data(); }
    [[nodiscard]] std::byte* end() noexcept { return data() + size(); }
    [[nodiscard]] std::byte const* begin() const noexcept { return data(); }
    [[nodiscard]] std::byte const* end() const noexcept { return data() + size(); }
    [[nodiscard]] std::string_view view() const noexcept {
        return {reinterpret_cast<char const*>(data()), size()};
    }

    /// Gives the block away: nothing is owned any more.
    std::byte* release() noexcept {
        capacity_ = begin_ = end_ = 0;
        return std::exchange(data_, nullptr);
    }

    /// The free room behind the content, to be filled; `grow` then makes it content.
    [[nodiscard]] buffer room() noexcept { return {data_ + end_, capacity_ - end_}; }
    void grow(std::size_t filled) noexcept { end_ += filled; }
    /// Drops the first `n` bytes of the content.
    void remove_prefix(std::size_t n) noexcept { begin_ += n; }
    /// Drops all but the first `n` bytes of the content.
    void truncate(std::size_t n) noexcept { end_ = begin_ + n; }

    friend bool operator==(pooled_buffer const& a, std::string_view b) noexcept {
        return a.view() == b;
    }

private:
    std::byte* data_ = nullptr;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace plumb
