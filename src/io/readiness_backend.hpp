// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/io_backend.hpp"

namespace plumb {

/// The backend over a poller of the system in use: epoll on Linux, the simulated one under simulation.
result<std::unique_ptr<io_backend>> make_readiness_backend(io_multiplexer& owner) noexcept;

/// Does the operation's i/o now, without waiting.
/// @param connecting  of the handle: whether a connection is being made, which this begins or finds the end of
/// @return what the system call gave, minus EAGAIN if not ready
platform::outcome attempt(native_handle native, handle_kind kind, io_operation& op,
                          bool& connecting) noexcept;

}  // namespace plumb
