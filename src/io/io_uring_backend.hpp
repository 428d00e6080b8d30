// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/io_backend.hpp"

namespace plumb::platform {

/// @param any_thread  whether threads take turns in driving it from the start
/// Errors: what setting up the ring gives; function_not_supported where the kernel or plumb has none.
result<std::unique_ptr<io_backend>> make_io_uring_backend(io_multiplexer& owner,
                                                          bool any_thread) noexcept;

}  // namespace plumb::platform
