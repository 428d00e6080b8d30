// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/path_view.hpp>
#include <plumb/handle/handle.hpp>

namespace plumb {

/// A place in the file system, held open: what other paths are opened relative to.
///
/// It stays the same directory when that is renamed or something else takes its name, so that what
/// is opened below it can't be diverted in between. A closed one stands for the working directory
/// of the process. It can't be read. Source: P1031 path_handle.
class path_handle : public handle {
public:
    /// A closed handle.
    path_handle() noexcept : handle(handle_kind::path) {}

    /// Opens whatever is at `path`; needs no permission for it. Links are followed.
    /// @param path  relative to `base`, unless it starts with a slash
    /// Errors: `zero_in_path`, what open(2) gives.
    static result<path_handle> path(path_handle const& base, path_view path) noexcept;
    static result<path_handle> path(path_view path) noexcept { return path_handle::path({}, path); }

    /// Opens a directory. As `path`.
    /// Errors: also not_a_directory.
    static result<path_handle> directory(path_handle const& base, path_view path) noexcept;
    static result<path_handle> directory(path_view path) noexcept { return directory({}, path); }

    /// Takes ownership of a native handle, of a directory where it is to be a base.
    static path_handle adopt(native_handle native) noexcept { return path_handle(native); }

    /// Opens the same place again.
    [[nodiscard]] result<path_handle> clone() const noexcept;

private:
    explicit path_handle(native_handle native) noexcept : handle(handle_kind::path, native) {}
};

}  // namespace plumb
