// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/path_handle.hpp>

#include "handle/outcome.hpp"

namespace plumb {

/// @param how  of `platform::open_how`
/// @return a native handle that somebody has to own
inline result<native_handle> open_path(path_handle const& base, path_view path,
                                       std::uint32_t how) noexcept {
    path_view::zero_terminated const text(path);
    auto const given = text.get();
    if (!given) {
        return given.error();
    }
    return to_native(platform::os().open_file(base.native(), *given, how));
}

}  // namespace plumb
