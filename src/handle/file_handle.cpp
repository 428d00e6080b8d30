// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/file_handle.hpp>

#include "handle/open_file.hpp"
#include "handle/outcome.hpp"

namespace plumb {

result<file_handle> file_handle::file(path_handle const& base, path_view path, mode access,
                                      creation existence, caching cached) noexcept {
    return open_file(base, path, access, existence, cached).transform(adopt);
}

result<file_handle> file_handle::temporary_inode(path_handle const& directory,
                                                 caching cached) noexcept {
    return open_unnamed_file(directory, cached).transform(adopt);
}

result<file_handle> file_handle::clone() const noexcept {
    return to_native(platform::os().duplicate(native())).transform(adopt);
}

result<file_handle> file_handle::reopen(mode access, caching cached) const noexcept {
    return reopen_file(native(), access, cached).transform(adopt);
}

}  // namespace plumb
