// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/path_handle.hpp>

#include "handle/open_path.hpp"

namespace plumb {

result<path_handle> path_handle::path(path_handle const& base, path_view path) noexcept {
    return open_path(base, path, platform::open_place).transform(adopt);
}

result<path_handle> path_handle::directory(path_handle const& base, path_view path) noexcept {
    return open_path(base, path, platform::open_place | platform::open_directory).transform(adopt);
}

result<path_handle> path_handle::clone() const noexcept {
    return to_native(platform::os().duplicate(native())).transform(adopt);
}

}  // namespace plumb
