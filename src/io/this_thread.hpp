// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plumb {

class io_multiplexer;

/// An address that no other live thread gives.
inline void const* this_thread_token() noexcept { return __builtin_thread_pointer(); }

/// The multiplexer that `io_multiplexer::this_thread` gives; null before the first use.
extern thread_local constinit io_multiplexer* this_thread_multiplexer;

}  // namespace plumb
