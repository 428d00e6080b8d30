// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/file_handle.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace plumb {

/// A file that is read where the system keeps it: what a read returns points into a map of the file, nothing is copied,
/// and the buffers of the request only say how much is wanted.
///
/// What a read returned shows the file as it changes, stays valid while the file grows, and until this is closed,
/// destroyed, or `reserve`s. In mode `write` it may be written to; otherwise that is a fault. When the file is cut off,
/// by whomever, touching what is no more raises SIGBUS: see `guarded`.
/// Writes are system calls, which reads see at once, so that a full disk is an error and no signal.
/// A read needs an offset; without one it is invalid_argument. Beyond the end of a file that was longer before, and
/// was not cut off by this handle, it fails with `file_shrank`.
/// Otherwise as `seekable_handle`; an asynchronous read is over at once. Source: P1031 mapped_file_handle.
class mapped_file_handle : public seekable_handle {
public:
    /// A closed handle.
    mapped_file_handle() noexcept : seekable_handle(handle_kind::mapped_file) {}
    mapped_file_handle(mapped_file_handle&& other) noexcept;
    mapped_file_handle& operator=(mapped_file_handle&& other) noexcept;
    ~mapped_file_handle() { unmap(); }

    /// Opens and maps a file; as `file_handle::file`.
    /// @param reservation  as for `reserve`
    /// Errors: also not_supported without caching, permission_denied in mode `append`, what mmap(2) gives.
    static result<mapped_file_handle> mapped_file(path_handle const& base, path_view path,
                                                  mode access = mode::read,
                                                  creation existence = creation::open_existing,
                                                  caching cached = caching::all,
                                                  extent_type reservation = 0) noexcept;

    /// Maps a file that is open. That one may be closed afterwards.
    static result<mapped_file_handle> map(file_handle const& file,
                                          extent_type reservation = 0) noexcept;

    /// @return another handle of the same open file, with a map of its own
    [[nodiscard]] result<mapped_file_handle> clone() const noexcept;
    /// Opens and maps the same file again.
    [[nodiscard]] result<mapped_file_handle> reopen(mode access,
                                                    caching cached = caching::all) const noexcept;

    /// How many bytes of address space there are for the file; reads beyond them fail with `limit_exceeded`.
    [[nodiscard]] extent_type reservation() const noexcept { return reservation_; }
    /// Takes as much address space as that, and no memory. What was read before is no longer valid.
    /// @param bytes  0 for the size that the file has, and at least 1 GiB
    /// Errors: what mmap(2) gives; the reservation is as before then.
    result<void> reserve(extent_type bytes) noexcept;

    /// Calls `touch`, which may touch bytes that this handle's reads returned. When it comes to one that is no more,
    /// or that the device or the disk has no room for, it is left there: what it has made so far is not destroyed, so it
    /// should copy or compare bytes and do nothing else.
    /// Handles the signal SIGBUS of the process; faults at other addresses go to the handler that was there before.
    /// Errors: `map_fault` where it was left. Threads: any. Allocates: never.
    template <class F>
        requires std::is_nothrow_invocable_v<F&>
    result<void> guarded(F&& touch) const noexcept {
        using function = std::remove_reference_t<F>;
        return guard([](void* f) noexcept { (*static_cast<function*>(f))(); },
                     const_cast<void*>(static_cast<void const*>(std::addressof(touch))));
    }

    /// As `handle::close`, and gives the map back.
    result<void> close() noexcept;

private:
    friend class io_handle;
    friend class io_backend;
    explicit mapped_file_handle(native_handle native) noexcept
        : seekable_handle(handle_kind::mapped_file, native) {}
    static result<mapped_file_handle> make(result<native_handle> native,
                                           extent_type reservation) noexcept;
    io_result<buffers> read_mapped(io_request<buffers> request, deadline limit) noexcept;
    result<void> guard(void (*call)(void*) noexcept, void* object) const noexcept;
    void unmap() noexcept;

    std::byte* bytes_ = nullptr;
    extent_type reservation_ = 0;
};

/// As `mapped_file_handle::mapped_file`.
inline result<mapped_file_handle>
mapped_file(path_handle const& base, path_view path,
            mapped_file_handle::mode access = mapped_file_handle::mode::read,
            mapped_file_handle::creation existence = mapped_file_handle::creation::open_existing,
            mapped_file_handle::caching cached = mapped_file_handle::caching::all,
            extent_type reservation = 0) noexcept {
    return mapped_file_handle::mapped_file(base, path, access, existence, cached, reservation);
}

}  // namespace plumb
