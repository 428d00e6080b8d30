// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>

#include <cstdint>

namespace plumb {

/// What a process was given to read or write, such as its standard input: a file, a pipe, a terminal, a device or a
/// connected socket.
///
/// Others may share it, so its flags are never changed, and reads and writes don't rely on them. What can't be asked
/// not to wait, a terminal or a named pipe, is asked first whether it is ready; only if somebody else takes what was
/// there in between, the call waits.
/// A file is read and written where it stands, which moves on; it takes no offsets, and never waits, but for the disk.
/// Source: D2052R0 4.1.
class inherited_handle : public io_handle {
public:
    enum class thing : std::uint8_t {
        file,
        pipe,
        terminal,
        device,
        stream_socket,
        datagram_socket
    };

    /// A closed handle.
    inherited_handle() noexcept : io_handle(handle_kind::shared_pipe) {}

    /// The standard streams of the process. The handle is another one of the same thing: closing it leaves the
    /// process's own open. A terminal is opened again where the system lets this process, so that it never waits.
    /// Errors: bad_file_descriptor where the process was started without it; wrong_kind; what dup(2) gives.
    static result<inherited_handle> standard_input() noexcept;
    static result<inherited_handle> standard_output() noexcept;
    static result<inherited_handle> standard_error() noexcept;

    /// Takes ownership of a native handle, whose flags are not changed.
    /// Errors: wrong_kind for directories and listeners, and what fstat(2) gives; the native handle then still is the
    /// caller's.
    static result<inherited_handle> adopt(native_handle native) noexcept;

    /// What it is a handle of.
    [[nodiscard]] thing what() const noexcept { return what_; }

    /// @return another handle of the same thing
    [[nodiscard]] result<inherited_handle> clone() const noexcept;

private:
    inherited_handle(native_handle native, handle_kind kind, thing what) noexcept
        : io_handle(kind, native), what_(what) {}
    static result<inherited_handle> standard(native_handle native, bool reads) noexcept;

    thing what_ = thing::device;
};

}  // namespace plumb
