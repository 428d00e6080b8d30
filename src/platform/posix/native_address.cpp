// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace plumb::platform {

constexpr std::size_t unix_header = offsetof(sockaddr_un, sun_path);

native_address::native_address(endpoint const& e) noexcept {
    std::memset(&storage_, 0, sizeof(storage_));
    auto const bytes = e.address_bytes();
    if (e.family() == endpoint::family_type::unix_domain) {
        auto& a = storage_.local;
        a.sun_family = AF_UNIX;
        std::ranges::copy(bytes, a.sun_path);
        // A path ends with a null; what is longer was given by the system, which does without.
        bool const terminated = !e.path().empty() && bytes.size() < sizeof(a.sun_path);
        size_ = static_cast<socklen_t>(unix_header + bytes.size() + (terminated ? 1 : 0));
    } else if (e.family() == endpoint::family_type::ipv6) {
        auto& a = storage_.v6;
        a.sin6_family = AF_INET6;
        a.sin6_port = htons(e.port());
        a.sin6_scope_id = e.scope_id();
        std::memcpy(&a.sin6_addr, bytes.data(), sizeof(a.sin6_addr));
        size_ = sizeof(a);
    } else {
        auto& a = storage_.v4;
        a.sin_family = AF_INET;
        a.sin_port = htons(e.port());
        std::memcpy(&a.sin_addr, bytes.data(), sizeof(a.sin_addr));
        size_ = sizeof(a);
    }
}

outcome native_address::to(endpoint& e) const noexcept {
    if (size_ == 0) {  // the sender of a datagram whose socket has no name
        e = endpoint::unix_unnamed();
        return 0;
    }
    switch (storage_.any.sa_family) {
    case AF_INET: {
        auto const& a = storage_.v4;
        std::span<std::uint8_t const, 4> const bytes(
            reinterpret_cast<std::uint8_t const*>(&a.sin_addr), 4);
        e = endpoint::from_v4_bytes(bytes, ntohs(a.sin_port));
        return 0;
    }
    case AF_INET6: {
        auto const& a = storage_.v6;
        std::span<std::uint8_t const, 16> const bytes(a.sin6_addr.s6_addr);
        e = endpoint::from_v6_bytes(bytes, ntohs(a.sin6_port), a.sin6_scope_id);
        return 0;
    }
    case AF_UNIX: {
        auto const& a = storage_.local;
        std::span bytes(reinterpret_cast<std::uint8_t const*>(a.sun_path),
                        std::min<std::size_t>(size_, sizeof(a)) - unix_header);
        if (!bytes.empty() && bytes[0] != 0) {
            bytes =
                bytes.first(static_cast<std::size_t>(std::ranges::find(bytes, 0) - bytes.begin()));
        }
        e = endpoint::from_unix_bytes(bytes);
        return 0;
    }
    default:
        return -EAFNOSUPPORT;
    }
}

}  // namespace plumb::platform
