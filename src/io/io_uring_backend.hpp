// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/io_backend.hpp"

namespace plumb::platform {

/// Errors: what setting up the ring gives; function_not_supported where the kernel or plumb has none.
result<std::unique_ptr<io_backend>> make_io_uring_backend(io_multiplexer& owner) noexcept;

}  // namespace plumb::platform
