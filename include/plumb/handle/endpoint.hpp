// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/result.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace plumb {

/// An IPv4 or IPv6 address and a port, or a unix address: where a socket listens, connects or sends to.
///
/// A unix address is a path in the file system, on Linux also a name without a file (abstract), or none (unnamed):
/// what a socket has that was never bound.
/// Threads: as a value. Allocates: only `to_string`.
class endpoint {
public:
    enum class family_type : std::uint8_t { ipv4, ipv6, unix_domain };

    /// 0.0.0.0:0
    constexpr endpoint() noexcept = default;

    /// Understands `1.2.3.4:80` and `[::1]:80`, with a numeric scope `[fe80::1%2]:80`; no names, no
    /// leading zeros in decimal numbers, and nothing before or after. Also `unix:` and a path, `unix:@` and an
    /// abstract name, `unix:./@` and the rest of a path that begins with `@`, and `unix:` alone, unnamed.
    /// Errors: not_an_address, filename_too_long.
    static result<endpoint> parse(std::string_view text) noexcept;
    /// Understands an address without brackets: `1.2.3.4`, `::1`, `fe80::1%2`.
    /// Errors: not_an_address.
    static result<endpoint> parse_address(std::string_view host, std::uint16_t port) noexcept;

    /// All addresses of this machine.
    static endpoint any_v4(std::uint16_t port) noexcept;
    static endpoint any_v6(std::uint16_t port) noexcept;
    /// 127.0.0.1 and ::1
    static endpoint loopback_v4(std::uint16_t port) noexcept;
    static endpoint loopback_v6(std::uint16_t port) noexcept;
    /// @param bytes  in network order
    static endpoint from_v4_bytes(std::span<std::uint8_t const, 4> bytes,
                                  std::uint16_t port) noexcept;
    static endpoint from_v6_bytes(std::span<std::uint8_t const, 16> bytes, std::uint16_t port,
                                  std::uint32_t scope = 0) noexcept;

    /// How long a path or an abstract name may be.
    static constexpr std::size_t most_unix_bytes = 107;
    /// A path in the file system; a relative one begins where the process is when it is used.
    /// Errors: not_an_address where it is empty or has a null in it, filename_too_long.
    static result<endpoint> unix_path(std::string_view path) noexcept;
    /// A name in Linux's abstract namespace, of any bytes; it is free again when its last socket is closed.
    /// Errors: not_an_address where it is empty, filename_too_long.
    static result<endpoint> unix_abstract(std::string_view name) noexcept;
    static endpoint unix_unnamed() noexcept;
    /// As the system writes them: a path, or a null and an abstract name, or nothing.
    static endpoint from_unix_bytes(std::span<std::uint8_t const> bytes) noexcept;

    [[nodiscard]] family_type family() const noexcept { return family_; }
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// The same with another port; unix addresses have none.
    [[nodiscard]] endpoint with_port(std::uint16_t port) const noexcept;
    /// The interface that a link-local IPv6 address belongs to; 0 for none, and for other families.
    [[nodiscard]] std::uint32_t scope_id() const noexcept { return scope_; }
    /// 4 or 16 bytes in network order; of a unix address what `from_unix_bytes` takes.
    [[nodiscard]] std::span<std::uint8_t const> address_bytes() const noexcept {
        return std::span(bytes_).first(family_ == family_type::ipv4   ? 4
                                       : family_ == family_type::ipv6 ? 16
                                                                      : unix_size_);
    }
    /// Of a unix address; empty where it is none.
    [[nodiscard]] std::string_view path() const noexcept;
    [[nodiscard]] std::string_view abstract_name() const noexcept;
    /// Whether it is in 127.0.0.0/8, also mapped into IPv6, or ::1.
    [[nodiscard]] bool is_loopback() const noexcept;

    /// As `parse` understands it; IPv6 in the canonical form of RFC 5952. Names are written byte by byte, whatever
    /// they hold; a path that begins with `@` as `./@...`.
    [[nodiscard]] std::string to_string() const;

    /// Room for the text of any endpoint.
    static constexpr std::size_t most_chars = 128;
    /// Writes the text, without a null at its end.
    /// @return the end of the text; null, with nothing written, when there is no room for it
    char* to_chars(char* first, char* last) const noexcept;

    friend bool operator==(endpoint const&, endpoint const&) noexcept = default;
    /// By family, address, scope and port; names by their bytes.
    friend std::strong_ordering operator<=>(endpoint const& a, endpoint const& b) noexcept;

private:
    std::array<std::uint8_t, 108> bytes_{};  // those behind the address are 0
    std::uint32_t scope_ = 0;
    std::uint16_t port_ = 0;
    family_type family_ = family_type::ipv4;
    std::uint8_t unix_size_ = 0;  // of a unix address
};

static_assert(sizeof(endpoint) == 116 && std::is_trivially_copyable_v<endpoint>);

}  // namespace plumb

template <>
struct std::hash<plumb::endpoint> {
    std::size_t operator()(plumb::endpoint const& e) const noexcept;
};
