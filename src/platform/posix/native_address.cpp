// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <cerrno>
#include <cstring>
#include <span>

#include <netinet/in.h>

namespace plumb::platform {

native_address::native_address(endpoint const& e) noexcept : storage_{} {
    auto const bytes = e.address_bytes();
    if (e.family() == endpoint::family_type::ipv6) {
        auto& a = reinterpret_cast<sockaddr_in6&>(storage_);
        a.sin6_family = AF_INET6;
        a.sin6_port = htons(e.port());
        a.sin6_scope_id = e.scope_id();
        std::memcpy(&a.sin6_addr, bytes.data(), sizeof(a.sin6_addr));
        size_ = sizeof(a);
    } else {
        auto& a = reinterpret_cast<sockaddr_in&>(storage_);
        a.sin_family = AF_INET;
        a.sin_port = htons(e.port());
        std::memcpy(&a.sin_addr, bytes.data(), sizeof(a.sin_addr));
        size_ = sizeof(a);
    }
}

outcome native_address::to(endpoint& e) const noexcept {
    switch (storage_.ss_family) {
    case AF_INET: {
        auto const& a = reinterpret_cast<sockaddr_in const&>(storage_);
        std::span<std::uint8_t const, 4> const bytes(
            reinterpret_cast<std::uint8_t const*>(&a.sin_addr), 4);
        e = endpoint::from_v4_bytes(bytes, ntohs(a.sin_port));
        return 0;
    }
    case AF_INET6: {
        auto const& a = reinterpret_cast<sockaddr_in6 const&>(storage_);
        std::span<std::uint8_t const, 16> const bytes(a.sin6_addr.s6_addr);
        e = endpoint::from_v6_bytes(bytes, ntohs(a.sin6_port), a.sin6_scope_id);
        return 0;
    }
    default:
        return -EAFNOSUPPORT;
    }
}

}  // namespace plumb::platform
