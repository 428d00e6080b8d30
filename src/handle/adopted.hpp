// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/error.hpp>
#include <plumb/base/result.hpp>

#include "platform/seam.hpp"

namespace plumb {

/// What a native handle names.
inline result<platform::native_kind> kind_of(native_handle native) noexcept {
    auto const known = platform::os().kind_of(native);
    if (known < 0) {
        return platform::error_of(known);
    }
    return static_cast<platform::native_kind>(known);
}

/// @return the native handle, if it names that
inline result<native_handle> adopted(native_handle native, platform::native_kind wanted) noexcept {
    auto const kind = kind_of(native);
    if (!kind) {
        return kind.error();
    }
    if (*kind != wanted) {
        return error::wrong_kind;
    }
    return native;
}

}  // namespace plumb
