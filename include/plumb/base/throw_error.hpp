// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

namespace plumb {

/// Throws `std::system_error`. Out of line, in the one file of the low rooms that has exceptions,
/// so that code without them can use what calls it.
/// @param what  what was being done, or null
[[noreturn]] void throw_error(std::error_code code, char const* what = nullptr);

}  // namespace plumb
