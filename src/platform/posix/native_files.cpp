// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_call.hpp"
#include "platform/posix/native_seam.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace plumb::platform {
namespace {

int native_flags(std::uint32_t how) noexcept {
    int flags = O_CLOEXEC | O_NOCTTY;
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
        {open_unnamed, O_TMPFILE}, {open_directory, O_DIRECTORY}, {open_nonblocking, O_NONBLOCK},
    };
    for (auto const& entry : table) {
        flags |= (how & entry.how) != 0 ? entry.flag : 0;
    }
    return flags;
}

std::uint32_t direct_alignment(native_handle h) noexcept {
    struct statx s;
    if (::syscall(SYS_statx, descriptor(h), "", AT_EMPTY_PATH, STATX_DIOALIGN, &s) == 0 &&
        (s.stx_mask & STATX_DIOALIGN) != 0 && s.stx_dio_offset_align != 0) {
        return std::max(s.stx_dio_mem_align, s.stx_dio_offset_align);
    }
    return 4096;  // enough for every device, where the kernel doesn't tell
}

int directory_of(native_handle base) noexcept {
    return base == no_native_handle ? AT_FDCWD : descriptor(base);
}

outcome address_or_error(void* map) noexcept {
    return map == MAP_FAILED ? -errno : static_cast<outcome>(reinterpret_cast<std::intptr_t>(map));
}

native_kind kind_of_socket(native_handle h) noexcept {
    auto const option = [h](int name) {
        int value = 0;
        socklen_t size = sizeof(value);
        return ::getsockopt(descriptor(h), SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
    };
    switch (option(SO_TYPE)) {
    case SOCK_STREAM:
        return option(SO_ACCEPTCONN) > 0 ? native_kind::listen_socket : native_kind::stream_socket;
    case SOCK_DGRAM:
        return native_kind::datagram_socket;
    default:
        return native_kind::other_socket;
    }
}

constexpr auto no_position = io_request<buffers>::no_offset;

// Who may do what with a new file is left to the mask of the process.
constexpr mode_t everybody = 0666;

}  // namespace

outcome open_file(native_handle base, char const* path, std::uint32_t how) noexcept {
    return retried(
        [&] { return ::openat(directory_of(base), path, native_flags(how), everybody); });
}

outcome make_pipe(native_handle base, char const* path) noexcept {
    return checked(::mkfifoat(directory_of(base), path, everybody));
}

outcome reopen_file(native_handle h, std::uint32_t how) noexcept {
    char path[32];
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor(h));
    return open_file(no_native_handle, path, how);
}

outcome duplicate(native_handle h) noexcept {
    return checked(::fcntl(descriptor(h), F_DUPFD_CLOEXEC, 0));
}

outcome rename(native_handle base, char const* from, char const* to) noexcept {
    return checked(::renameat(directory_of(base), from, directory_of(base), to));
}

outcome unlink(native_handle base, char const* path) noexcept {
    return checked(::unlinkat(directory_of(base), path, 0));
}

outcome describe_file(native_handle h, file_facts& facts) noexcept {
    auto const flags = checked(::fcntl(descriptor(h), F_GETFL));
    if (flags < 0) {
        return flags;
    }
    facts.appends = (flags & O_APPEND) != 0;
    facts.alignment = (flags & O_DIRECT) != 0 ? direct_alignment(h) : 1;
    return 0;
}

outcome kind_of(native_handle h) noexcept {
    struct stat s;
    if (auto const known = checked(::fstat(descriptor(h), &s)); known < 0) {
        return known;
    }
    auto const is = [](native_kind kind) { return static_cast<outcome>(kind); };
    switch (s.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK:
        return is(native_kind::file);
    case S_IFDIR:
        return is(native_kind::directory);
    case S_IFIFO:
        return is(native_kind::pipe);
    case S_IFSOCK:
        return is(kind_of_socket(h));
    default:
        return is(::isatty(descriptor(h)) != 0 ? native_kind::terminal : native_kind::device);
    }
}

outcome file_size(native_handle h) noexcept {
    struct stat s;
    auto const known = checked(::fstat(descriptor(h), &s));
    return known < 0 ? known : s.st_size;
}

outcome resize_file(native_handle h, extent_type size) noexcept {
    return retried([&] { return ::ftruncate(descriptor(h), static_cast<off_t>(size)); });
}

outcome deallocate(native_handle h, extent_type offset, extent_type bytes) noexcept {
    return retried([&] {
        return ::fallocate(descriptor(h), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           static_cast<off_t>(offset), static_cast<off_t>(bytes));
    });
}

// Where the file system can share extents, this does.
outcome copy_range(native_handle from, extent_type offset, native_handle to, extent_type to_offset,
                   extent_type bytes) noexcept {
    return retried([&] {
        auto in = static_cast<off_t>(offset);
        auto out = static_cast<off_t>(to_offset);
        return ::copy_file_range(descriptor(from), &in, descriptor(to), &out, bytes, 0);
    });
}

outcome lock_range(native_handle h, range_locking what, extent_type offset, extent_type bytes,
                   bool wait) noexcept {
    struct flock lock{};  // an open file's lock names no process
    lock.l_type = what == range_locking::unlock  ? F_UNLCK
                  : what == range_locking::share ? F_RDLCK
                                                 : F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(offset);
    lock.l_len = static_cast<off_t>(bytes);
    return retried(
        [&] { return ::fcntl(descriptor(h), wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock); });
}

// One buffer is cheaper for the kernel than a list of one.
outcome read_at(native_handle h, buffer const* b, std::size_t count, extent_type offset) noexcept {
    if (count == 1 && offset != no_position) {
        return retried([&] {
            return ::pread(descriptor(h), b->data(), b->size(), static_cast<off_t>(offset));
        });
    }
    auto const* const v = reinterpret_cast<iovec const*>(b);
    int const n = static_cast<int>(std::min(count, most_buffers));
    return retried([&] { return ::preadv2(descriptor(h), v, n, static_cast<off_t>(offset), 0); });
}

outcome try_read_at(native_handle h, buffer const* b, std::size_t count,
                    extent_type offset) noexcept {
    auto const* const v = reinterpret_cast<iovec const*>(b);
    int const n = static_cast<int>(std::min(count, most_buffers));
    return retried(
        [&] { return ::preadv2(descriptor(h), v, n, static_cast<off_t>(offset), RWF_NOWAIT); });
}

outcome write_at(native_handle h, const_buffer const* b, std::size_t count,
                 extent_type offset) noexcept {
    if (count == 1 && offset != no_position) {
        return retried([&] {
            return ::pwrite(descriptor(h), b->data(), b->size(), static_cast<off_t>(offset));
        });
    }
    auto const* const v = reinterpret_cast<iovec const*>(b);
    int const n = static_cast<int>(std::min(count, most_buffers));
    return retried([&] { return ::pwritev2(descriptor(h), v, n, static_cast<off_t>(offset), 0); });
}

outcome sync_file(native_handle h, barrier_kind kind, extent_type offset,
                  extent_type bytes) noexcept {
    return retried([&] {
        switch (kind) {
        case barrier_kind::nowait_data_only:
            return ::sync_file_range(descriptor(h), static_cast<off_t>(offset),
                                     static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
        case barrier_kind::wait_data_only:
            return ::fdatasync(descriptor(h));
        case barrier_kind::wait_all:
            break;
        }
        return ::fsync(descriptor(h));
    });
}

outcome map_file(native_handle h, extent_type bytes) noexcept {
    auto const map = [&](int protection) {
        return address_or_error(
            ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, descriptor(h), 0));
    };
    auto const writable = map(PROT_READ | PROT_WRITE);
    return writable == -EACCES || writable == -EPERM ? map(PROT_READ) : writable;
}

outcome remap_file(void* map, extent_type bytes, extent_type to) noexcept {
    return address_or_error(::mremap(map, bytes, to, MREMAP_MAYMOVE));
}

outcome unmap_file(void* map, extent_type bytes) noexcept { return checked(::munmap(map, bytes)); }

}  // namespace plumb::platform
