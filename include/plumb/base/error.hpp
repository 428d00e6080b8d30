// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

namespace plumb {

/// What plumb itself reports. Where POSIX has a name for what happened, the code compares equal to
/// that `std::errc`: `timed_out`, `operation_canceled`, `connection_refused`, ...
enum class error {
    /// The stream ended before everything that was asked for had come.
    end_of_stream = 1,
    /// More came than the limit allows.
    limit_exceeded,
    /// Another operation of this kind is in flight on the handle.
    busy,
    /// Bytes that were already received wait to be read.
    parked_bytes,
    /// It was started before, and can be started once.
    already_started,
    /// A name where only a numeric address is understood.
    not_an_address,
    /// A path has a zero inside, where the system would end it.
    zero_in_path,
    /// Direct i/o with an address, a size or an offset that isn't a multiple of the alignment.
    misaligned,
    /// A mapped file ends before bytes that it once had.
    file_shrank,
    /// Mapped bytes that are there no more, or that the device or the file system couldn't provide.
    map_fault,
    /// The native handle names something of another kind.
    wrong_kind,
};

/// Lives from before any other object until the process has ended.
[[nodiscard]] std::error_category const& plumb_category() noexcept;

[[nodiscard]] inline std::error_code make_error_code(error e) noexcept {
    return {static_cast<int>(e), plumb_category()};
}

/// What the operating system calls `number`; on POSIX an errno.
[[nodiscard]] inline std::error_code error_from_system(int number) noexcept {
    return {number, std::system_category()};
}

}  // namespace plumb

template <>
struct std::is_error_code_enum<plumb::error> : std::true_type {};
