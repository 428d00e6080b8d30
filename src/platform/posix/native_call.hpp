// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"

#include <cerrno>

namespace plumb::platform {

constexpr int descriptor(native_handle h) noexcept { return static_cast<int>(h); }

inline outcome checked(long value) noexcept {
    if (value < 0) [[unlikely]] {
        return -errno;
    }
    return value;
}

template <class Call>
outcome retried(Call call) noexcept {
    long value;
    do {
        value = call();
    } while (value < 0 && errno == EINTR);
    return checked(value);
}

}  // namespace plumb::platform
