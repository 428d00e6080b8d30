// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/pooled_buffer.hpp>

namespace plumb::aio {

/// What the reads of a stream return: owns its bytes, is recycled when dropped.
using bytes = pooled_buffer;

}  // namespace plumb::aio
