// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace plumb::fuzz {

/// Ends the process where something that must hold doesn't.
inline void check(bool holds, char const* what) {
    if (!holds) {
        std::fprintf(stderr, "fuzz: it does not hold that %s\n", what);
        std::abort();
    }
}

/// Takes an input apart. After its end everything is 0.
class input {
public:
    input(std::uint8_t const* data, std::size_t size) noexcept : rest_(data, size) {}

    [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }

    template <std::integral T>
    T take() noexcept {
        T value{};
        auto const some = rest_.first(std::min(sizeof(T), rest_.size()));
        std::memcpy(&value, some.data(), some.size());
        rest_ = rest_.subspan(some.size());
        return value;
    }
    std::string_view take_text(std::size_t most) noexcept {
        auto const some = rest_.first(std::min(most, rest_.size()));
        rest_ = rest_.subspan(some.size());
        return {reinterpret_cast<char const*>(some.data()), some.size()};
    }
    std::string_view take_all() noexcept { return take_text(rest_.size()); }

private:
    std::span<std::uint8_t const> rest_;
};

}  // namespace plumb::fuzz

/// What libFuzzer, and `replay.cpp`, call.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);
