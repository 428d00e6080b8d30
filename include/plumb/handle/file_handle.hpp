// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/path_handle.hpp>
#include <plumb/handle/seekable_handle.hpp>

namespace plumb {

/// A file, read and written by system calls.
///
/// ```cpp
/// auto config = plumb::file({}, "config").value();
/// std::vector<std::byte> bytes(config.maximum_extent().value());
/// bytes.resize(config.read({bytes, 0}).value().bytes());
/// ```
/// Source: D2052R0 4.1, P1031 file_handle.
class file_handle : public seekable_handle {
public:
    /// A closed handle.
    file_handle() noexcept : seekable_handle(handle_kind::file) {}

    /// Opens a file.
    /// @param base  what `path` is relative to; `{}` for the working directory
    /// Errors: `zero_in_path`; invalid_argument for a mode that can't create as asked for; not_supported where the file
    /// system has no i/o without caching; what open(2), for `always_new` also rename(2), gives.
    static result<file_handle> file(path_handle const& base, path_view path,
                                    mode access = mode::read,
                                    creation existence = creation::open_existing,
                                    caching cached = caching::all) noexcept;

    /// Makes a file that has no name and is gone when it is closed; in mode `write`.
    /// @param directory  where it takes its space from; `{}` for the working directory
    static result<file_handle> temporary_inode(path_handle const& directory,
                                               caching cached = caching::all) noexcept;

    /// Takes ownership of a native handle. Its flags are not changed.
    static file_handle adopt(native_handle native) noexcept { return file_handle(native); }

    /// @return another handle of the same open file: they share its position and its locks
    [[nodiscard]] result<file_handle> clone() const noexcept;

    /// Opens the same file again, also when it has another name by now, or none.
    [[nodiscard]] result<file_handle> reopen(mode access,
                                             caching cached = caching::all) const noexcept;

private:
    explicit file_handle(native_handle native) noexcept
        : seekable_handle(handle_kind::file, native) {}
};

/// As `file_handle::file`.
inline result<file_handle>
file(path_handle const& base, path_view path, file_handle::mode access = file_handle::mode::read,
     file_handle::creation existence = file_handle::creation::open_existing,
     file_handle::caching cached = file_handle::caching::all) noexcept {
    return file_handle::file(base, path, access, existence, cached);
}

}  // namespace plumb
