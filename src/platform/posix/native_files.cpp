// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_call.hpp"
#include "platform/posix/native_seam.hpp"

#include <fcntl.h>

namespace plumb::platform {
namespace {

int native_flags(std::uint32_t how) noexcept {
    int flags = O_CLOEXEC;
    if ((how & open_place) != 0) {
        flags |= O_PATH;
    } else if ((how & open_write) != 0) {
        flags |= (how & open_read) != 0 ? O_RDWR : O_WRONLY;
    }
    constexpr struct {
        open_how how;
        int flag;
    } table[]{
        {open_append, O_APPEND},   {open_create, O_CREAT},        {open_exclusive, O_EXCL},
        {open_truncate, O_TRUNC},  {open_synchronous, O_SYNC},    {open_direct, O_DIRECT},
        {open_unnamed, O_TMPFILE}, {open_directory, O_DIRECTORY},
    };
    for (auto const& entry : table) {
        flags |= (how & entry.how) != 0 ? entry.flag : 0;
    }
    return flags;
}

// Who may do what with a new file is left to the mask of the process.
constexpr mode_t everybody = 0666;

}  // namespace

outcome open_file(native_handle base, char const* path, std::uint32_t how) noexcept {
    int const from = base == no_native_handle ? AT_FDCWD : descriptor(base);
    return retried([&] { return ::openat(from, path, native_flags(how), everybody); });
}

outcome duplicate(native_handle h) noexcept {
    return checked(::fcntl(descriptor(h), F_DUPFD_CLOEXEC, 0));
}

}  // namespace plumb::platform
