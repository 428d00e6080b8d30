// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>
#include <plumb/handle/range_lock.hpp>

#include <cstddef>
#include <cstdint>

namespace plumb {

/// A handle on bytes that have positions; what files and mapped files share.
///
/// Reads and writes are at the offset of the request; one without an offset is at the position that the open file
/// keeps, which it moves on. They take lists of any length, and move less than asked for only at the end of the file,
/// when the disk is full, or when something fails after the first bytes. A read at or beyond the end is success with
/// 0 bytes. In mode `append` a write goes to the end of the file whatever its offset, and what one call writes, of a
/// list at most 1024 buffers, stays together.
/// Blocking i/o on files can't be interrupted: with a deadline, also one of zero, it is not_supported.
/// Asynchronous i/o takes the same requests and gives the same results; any number may be in flight, in no order among
/// themselves. What is in memory is read at once. A cancel or a deadline ends what waits for its turn; what the system
/// already does goes on to its result where the system can't stop it. A deadline of zero reads what is in memory, and is
/// not_supported otherwise.
/// Threads: any number at a time, but for requests without an offset. Source: P1031 file_handle.
class seekable_handle : public io_handle {
public:
    /// What the handle is for.
    enum class mode : std::uint8_t {
        read,
        /// Reading, too.
        write,
        /// Writing at the end, and nothing else.
        append,
        /// Neither reading nor writing: `maximum_extent`, `reopen`. Needs no permission for the file.
        attributes,
    };
    /// Whether the file exists.
    enum class creation : std::uint8_t {
        open_existing,
        /// Fails with file_exists where there is one.
        create_new,
        /// Opens what exists, else creates.
        if_needed,
        /// Opens what exists and makes it empty; not in mode `read`.
        truncate,
        /// A new file takes the name from the old one at once; who has the old one open keeps it.
        always_new,
    };
    /// What the system may keep in memory.
    enum class caching : std::uint8_t {
        all,
        /// Each write is over when it is stored.
        reads,
        /// The same, and bytes move between the device and the buffers directly: see `alignment`.
        none,
    };

    /// With `caching::none`, what addresses, sizes and offsets must be multiples of; otherwise 1.
    [[nodiscard]] std::size_t alignment() const noexcept { return alignment_; }

    /// @return the size of the file, in bytes
    [[nodiscard]] result<extent_type> maximum_extent() const noexcept;

    /// Makes the file that long: cuts it off, or lets it end with zeros that need no space.
    /// Errors: what ftruncate(2) gives.
    result<void> truncate(extent_type extent) noexcept;

    /// Makes these bytes zero and gives their space back, or where the file system can't, writes
    /// zeros. Never changes the size: what lies beyond the end is left out.
    /// Errors: what fallocate(2) and write(2) give; not_supported where zeros would have to be written in mode `append`.
    result<void> zero(extent_type offset, extent_type bytes) noexcept;

    /// Copies bytes to another place in this or another file; the ranges may overlap. Where the
    /// file system can, both share the space until one is written to.
    /// @return how many: less than asked for where the file ends before
    /// Errors: `end_of_stream` where the file shrinks meanwhile, not_supported when `to` is in mode `append`,
    /// what copy_file_range(2), read(2) and write(2) give. After an error some bytes may have been copied.
    result<extent_type> clone_extents(extent_type offset, extent_type bytes, seekable_handle& to,
                                      extent_type to_offset) noexcept;

    /// Locks bytes against other handles, in this and in other processes, that lock them too.
    /// Handles that were cloned from each other share their locks; reopened ones don't. Locking again what the handle
    /// itself has locked changes the kind of the lock.
    /// @param bytes  0 for all from `offset` on, however long the file becomes
    /// @param limit  as for `read`; kept to within 10 ms, without end the wait is the system's own
    /// Errors: timed_out, what fcntl(2) gives for F_OFD_SETLK.
    result<range_lock> lock_range(extent_type offset, extent_type bytes,
                                  range_lock::kind_type kind = range_lock::kind_type::exclusive,
                                  deadline limit = {}) noexcept;
    result<range_lock>
    try_lock_range(extent_type offset, extent_type bytes,
                   range_lock::kind_type kind = range_lock::kind_type::exclusive) noexcept {
        return lock_range(offset, bytes, kind, std::chrono::nanoseconds(0));
    }

protected:
    /// A closed handle.
    explicit seekable_handle(handle_kind kind) noexcept : io_handle(kind) {}
    /// Takes ownership of a native handle, and asks the system how it was opened.
    seekable_handle(handle_kind kind, native_handle native) noexcept;
    seekable_handle(seekable_handle&&) noexcept = default;
    seekable_handle& operator=(seekable_handle&&) noexcept = default;
    ~seekable_handle() = default;

    /// Remembers how long the file is; for reads that tell its end from one that it didn't have before.
    /// @return how long it was at most since it was last cut off by this handle
    extent_type longest_seen(extent_type extent) noexcept;

private:
    friend class io_handle;
    friend class io_backend;
    io_result<buffers> read_at(io_request<buffers> request, deadline limit) noexcept;
    io_result<const_buffers> write_at(io_request<const_buffers> request, deadline limit) noexcept;
    io_result<const_buffers> store(io_request<const_buffers> request, barrier_kind kind,
                                   deadline limit) noexcept;
    template <class Buffers, class Call>
    io_result<Buffers> transfer(io_request<Buffers> const& request, deadline limit,
                                Call call) noexcept;
    template <class Buffers>
    [[nodiscard]] bool aligned(io_request<Buffers> const& request) const noexcept;
    result<void> copy(extent_type offset, extent_type bytes, seekable_handle& to,
                      extent_type to_offset) noexcept;

    extent_type longest_seen_ = 0;
    std::uint32_t alignment_ = 1;
    bool appends_ = false;
};

}  // namespace plumb
