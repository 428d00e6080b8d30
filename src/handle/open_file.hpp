// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/path_handle.hpp>
#include <plumb/handle/seekable_handle.hpp>

namespace plumb {

// These give a native handle that somebody has to own. What they promise stands at `file_handle`.

result<native_handle> open_file(path_handle const& base, path_view path,
                                seekable_handle::mode access, seekable_handle::creation existence,
                                seekable_handle::caching cached) noexcept;
result<native_handle> open_unnamed_file(path_handle const& directory,
                                        seekable_handle::caching cached) noexcept;
result<native_handle> reopen_file(native_handle native, seekable_handle::mode access,
                                  seekable_handle::caching cached) noexcept;

}  // namespace plumb
