// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb {

/// What the awaitables of i/o let a coroutine wait for; an awaitable says so by a constant `waits_for`.
enum class wait_kind : std::uint8_t { unknown, read, write, accept, connect, barrier, time };

[[nodiscard]] constexpr char const* to_string(wait_kind kind) noexcept {
    constexpr char const* names[] = {"unknown", "read",    "write", "accept",
                                     "connect", "barrier", "time"};
    return names[static_cast<unsigned>(kind)];
}

/// What an awaitable of type `A` waits for, as far as its type says.
template <class A>
inline constexpr wait_kind wait_kind_of = [] {
    if constexpr (requires { wait_kind(A::waits_for); }) {
        return A::waits_for;
    } else {
        return wait_kind::unknown;
    }
}();

}  // namespace plumb
