// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace plumb {

/// What owns a path and gives it as a string: `std::filesystem::path`.
template <class P>
concept native_path = requires(P const& p) {
    { p.native() } -> std::same_as<std::string const&>;
};

/// A path of somebody else, as the bytes that the system takes for one: in no encoding, and never
/// normalized. It need not end with a zero; where one follows, it is not copied for the system.
/// Threads: as a value. Allocates: never. Source: P1031, P1030.
class path_view {
public:
    class zero_terminated;

    /// An empty path.
    constexpr path_view() noexcept = default;
    /// @param text  that ends with a zero
    constexpr path_view(char const* text) noexcept : bytes_(text), has_zero_(true) {}
    path_view(std::nullptr_t) = delete;
    constexpr path_view(std::string const& text) noexcept : bytes_(text), has_zero_(true) {}
    constexpr path_view(std::string_view text) noexcept : bytes_(text) {}
    template <native_path P>
    path_view(P const& path) noexcept : path_view(path.native()) {}

    [[nodiscard]] constexpr std::string_view bytes() const noexcept { return bytes_; }
    [[nodiscard]] constexpr bool empty() const noexcept { return bytes_.empty(); }
    /// Whether a zero is known to follow.
    [[nodiscard]] constexpr bool is_zero_terminated() const noexcept { return has_zero_; }

    /// What follows the last slash; empty where the path ends with one.
    [[nodiscard]] constexpr path_view leaf() const noexcept {
        path_view last = *this;
        last.bytes_.remove_prefix(leaf_begin());
        return last;
    }
    /// What comes before the leaf, with its slash; empty where there is no slash.
    [[nodiscard]] constexpr path_view parent() const noexcept {
        return bytes_.substr(0, leaf_begin());
    }

    /// By bytes; two spellings of one path are different.
    friend constexpr bool operator==(path_view const& a, path_view const& b) noexcept {
        return a.bytes_ == b.bytes_;
    }
    friend constexpr std::strong_ordering operator<=>(path_view const& a,
                                                      path_view const& b) noexcept {
        return a.bytes_ <=> b.bytes_;
    }

private:
    // npos is one less than 0.
    [[nodiscard]] constexpr std::size_t leaf_begin() const noexcept {
        return bytes_.rfind('/') + 1;
    }

    std::string_view bytes_;
    bool has_zero_ = false;
};

/// A path as the system takes it, with a zero at its end. Where none follows, holds a copy, for
/// which it has room for the longest path that the system takes.
class path_view::zero_terminated {
public:
    explicit zero_terminated(path_view path) noexcept;
    zero_terminated(zero_terminated const&) = delete;
    zero_terminated& operator=(zero_terminated const&) = delete;

    /// Valid as long as this and the path are.
    /// Errors: `zero_in_path`, which would end it early; filename_too_long from 4096 bytes on.
    [[nodiscard]] result<char const*> get() const noexcept { return text_; }

private:
    result<char const*> text_;
    std::array<char, 4096> copy_;  // not filled before it is needed
};

}  // namespace plumb
