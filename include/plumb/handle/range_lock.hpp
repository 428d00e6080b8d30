// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/io_request.hpp>
#include <plumb/base/result.hpp>
#include <plumb/handle/native_handle.hpp>

#include <utility>

namespace plumb {

/// A lock on bytes of a file, held until this is destroyed. Made by `seekable_handle::lock_range`.
///
/// The handle may be moved meanwhile, but must not be closed: closing it ends its locks.
/// Threads: as the handle. Allocates: never. Source: P1031 extent_guard.
class [[nodiscard]] range_lock {
public:
    enum class kind_type : std::uint8_t {
        /// Other shared locks are allowed; the handle must be open for reading.
        shared,
        /// No other lock is allowed; the handle must be open for writing.
        exclusive,
    };

    /// Locks nothing.
    range_lock() noexcept = default;
    range_lock(range_lock&& other) noexcept
        : native_(std::exchange(other.native_, no_native_handle)),
          offset_(other.offset_),
          bytes_(other.bytes_) {}
    range_lock& operator=(range_lock&& other) noexcept {
        if (this != &other) {
            (void)unlock();
            native_ = std::exchange(other.native_, no_native_handle);
            offset_ = other.offset_;
            bytes_ = other.bytes_;
        }
        return *this;
    }
    ~range_lock() { (void)unlock(); }

    [[nodiscard]] bool is_locked() const noexcept { return native_ != no_native_handle; }

    /// Unlocks now. Unlocking what isn't locked does nothing.
    /// Errors: what fcntl(2) gives; it counts as unlocked in any case.
    result<void> unlock() noexcept;

private:
    friend class seekable_handle;
    range_lock(native_handle native, extent_type offset, extent_type bytes) noexcept
        : native_(native), offset_(offset), bytes_(bytes) {}

    native_handle native_ = no_native_handle;
    extent_type offset_ = 0;
    extent_type bytes_ = 0;
};

}  // namespace plumb
