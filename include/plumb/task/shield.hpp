// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/with_stop.hpp>

#include <type_traits>
#include <utility>

namespace plumb {

/// `co_await shield(f())`: awaits what no stop request of the coroutine reaches, such as a clean-up. The coroutine goes
/// on when it has ended; what it awaits next sees the request. Takes a temporary, awaited where it is made.
/// Threads: the executor's. Allocates: never.
template <affine_awaitable A>
    requires(!std::is_reference_v<A>)
[[nodiscard]] with_stop<A> shield(A&& awaited) noexcept {
    return with_stop<A>(stop_token(), std::move(awaited));
}

}  // namespace plumb
