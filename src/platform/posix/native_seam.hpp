// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"

#include <sys/socket.h>

namespace plumb::platform {

/// An endpoint as the socket calls want it.
class native_address {
public:
    native_address() noexcept : size_(sizeof(storage_)) {}
    explicit native_address(endpoint const& e) noexcept;

    [[nodiscard]] sockaddr const* get() const noexcept {
        return reinterpret_cast<sockaddr const*>(&storage_);
    }
    [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage_); }
    [[nodiscard]] socklen_t size() const noexcept { return size_; }
    [[nodiscard]] socklen_t* size_for_result() noexcept { return &size_; }

    /// @return 0, or minus the error for a family that plumb doesn't know
    outcome to(endpoint& e) const noexcept;

private:
    sockaddr_storage storage_;
    socklen_t size_;
};

// The poller of this platform; see the seam.
outcome open_poller() noexcept;
void close_poller(native_handle poller) noexcept;
outcome poller_add(native_handle poller, native_handle h, std::uint64_t key) noexcept;
outcome poller_remove(native_handle poller, native_handle h) noexcept;
outcome poller_wait(native_handle poller, poll_event* events, std::size_t capacity,
                    std::int64_t timeout) noexcept;
void poller_wake(native_handle poller) noexcept;

// Files; see the seam.
outcome open_file(native_handle base, char const* path, std::uint32_t how) noexcept;
outcome duplicate(native_handle) noexcept;

}  // namespace plumb::platform
