// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace plumb::platform {

/// An endpoint as the socket calls want it.
class native_address {
public:
    native_address() noexcept : size_(sizeof(storage_)) {}
    explicit native_address(endpoint const& e) noexcept;

    [[nodiscard]] sockaddr const* get() const noexcept { return &storage_.any; }
    [[nodiscard]] sockaddr* get() noexcept { return &storage_.any; }
    [[nodiscard]] socklen_t size() const noexcept { return size_; }
    [[nodiscard]] socklen_t* size_for_result() noexcept { return &size_; }

    /// @return 0, or minus the error for a family that plumb doesn't know
    outcome to(endpoint& e) const noexcept;

private:
    union {
        sockaddr any;
        sockaddr_in v4;
        sockaddr_in6 v6;
        sockaddr_un local;
    } storage_;
    socklen_t size_;
};

// The poller of this platform, and the watch on its clock; see the seam.
outcome open_clock_watch() noexcept;
outcome open_poller() noexcept;
void close_poller(native_handle poller) noexcept;
outcome poller_add(native_handle poller, native_handle h, std::uint64_t key) noexcept;
outcome poller_remove(native_handle poller, native_handle h) noexcept;
outcome poller_wait(native_handle poller, poll_event* events, std::size_t capacity,
                    std::int64_t timeout) noexcept;
void poller_wake(native_handle poller) noexcept;

// Files; see the seam.
outcome open_file(native_handle base, char const* path, std::uint32_t how) noexcept;
outcome make_pipe(native_handle base, char const* path) noexcept;
outcome reopen_file(native_handle, std::uint32_t how) noexcept;
outcome duplicate(native_handle) noexcept;
outcome rename(native_handle base, char const* from, char const* to) noexcept;
outcome unlink(native_handle base, char const* path) noexcept;
outcome describe_file(native_handle, file_facts& facts) noexcept;
outcome kind_of(native_handle) noexcept;
outcome file_size(native_handle) noexcept;
outcome resize_file(native_handle, extent_type size) noexcept;
outcome deallocate(native_handle, extent_type offset, extent_type bytes) noexcept;
outcome copy_range(native_handle from, extent_type offset, native_handle to, extent_type to_offset,
                   extent_type bytes) noexcept;
outcome lock_range(native_handle, range_locking, extent_type offset, extent_type bytes,
                   bool wait) noexcept;
outcome read_at(native_handle, buffer const* b, std::size_t count, extent_type offset) noexcept;
outcome try_read_at(native_handle, buffer const* b, std::size_t count, extent_type offset) noexcept;
outcome write_at(native_handle, const_buffer const* b, std::size_t count,
                 extent_type offset) noexcept;
outcome sync_file(native_handle, barrier_kind kind, extent_type offset, extent_type bytes) noexcept;
outcome map_file(native_handle, extent_type bytes) noexcept;
outcome remap_file(void* map, extent_type bytes, extent_type to) noexcept;
outcome unmap_file(void* map, extent_type bytes) noexcept;
outcome guard_map(void const* begin, std::size_t bytes, void (*call)(void*) noexcept,
                  void* object) noexcept;

// Threads.
outcome start_thread(thread_start& start) noexcept;
void join_thread(thread_start& start) noexcept;
int processor_count() noexcept;
std::int64_t process() noexcept;

}  // namespace plumb::platform
