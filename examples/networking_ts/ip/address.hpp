// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/throw_error.hpp>
#include <plumb/handle/endpoint.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace networking_ts::ip {

/// An IPv4 or IPv6 address; 0.0.0.0 at first.
class address {
public:
    address() noexcept = default;
    /// Of an endpoint of plumb, whose port is left out.
    explicit address(plumb::endpoint const& of) noexcept : at_(of.with_port(0)) {}

    [[nodiscard]] bool is_v4() const noexcept {
        return at_.family() == plumb::endpoint::family_type::ipv4;
    }
    [[nodiscard]] bool is_v6() const noexcept { return !is_v4(); }
    [[nodiscard]] bool is_loopback() const noexcept { return at_.is_loopback(); }
    [[nodiscard]] plumb::endpoint with_port(std::uint16_t port) const noexcept {
        return at_.with_port(port);
    }

    [[nodiscard]] std::string to_string() const {
        std::string const text = at_.to_string();  // 1.2.3.4:0 or [::1]:0
        return is_v4() ? text.substr(0, text.size() - 2) : text.substr(1, text.size() - 4);
    }

    friend bool operator==(address const&, address const&) noexcept = default;
    friend auto operator<=>(address const& a, address const& b) noexcept { return a.at_ <=> b.at_; }

private:
    plumb::endpoint at_;
};

/// Understands `1.2.3.4` and `::1`, no names.
inline address make_address(std::string_view text, std::error_code& error) noexcept {
    auto const parsed = plumb::endpoint::parse_address(text, 0);
    error = parsed ? std::error_code() : parsed.error();
    return parsed ? address(*parsed) : address();
}
inline address make_address(std::string_view text) {
    std::error_code error;
    auto const parsed = make_address(text, error);
    if (error) {
        plumb::throw_error(error, "make_address");
    }
    return parsed;
}

}  // namespace networking_ts::ip
