// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb {

/// What the operating system calls an open file, pipe or socket; on Linux a file descriptor.
using native_handle = std::intptr_t;

/// No open file.
inline constexpr native_handle no_native_handle = -1;

/// What kind of thing a native handle names.
enum class handle_kind : std::uint8_t {
    pipe,
    /// A pipe whose own end was told never to block: see `pipe_handle`.
    polled_pipe,
    /// A pipe, a terminal or a device that may be shared with others: its flags are never changed.
    shared_pipe,
    /// A file that is read and written where it stands: see `inherited_handle`.
    file_stream,
    stream_socket,
    listen_socket,
    /// A listener whose flags are never changed.
    shared_listen_socket,
    datagram_socket,
    path,
    file,
    mapped_file
};

/// Whether it has bytes at positions, and is always ready.
[[nodiscard]] constexpr bool is_seekable(handle_kind kind) noexcept {
    return kind == handle_kind::file || kind == handle_kind::mapped_file;
}

}  // namespace plumb
