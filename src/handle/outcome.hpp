// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>

#include "platform/seam.hpp"

namespace plumb {

inline result<void> to_result(platform::outcome o) noexcept {
    if (o < 0) {
        return platform::error_of(o);
    }
    return {};
}

inline result<native_handle> to_native(platform::outcome o) noexcept {
    if (o < 0) {
        return platform::error_of(o);
    }
    return o;
}

}  // namespace plumb
