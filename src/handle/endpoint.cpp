// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/endpoint.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

namespace plumb {
namespace {

constexpr std::string_view unix_prefix = "unix:";

/// A number that is all of `text`, without a sign.
template <std::unsigned_integral Number>
std::optional<Number> number(std::string_view text, int base = 10) noexcept {
    Number value{};
    char const* const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc() || stop != end) {
        return std::nullopt;
    }
    return value;
}

/// The same without leading zeros, which some take for octal.
template <std::unsigned_integral Number>
std::optional<Number> decimal(std::string_view text) noexcept {
    return text.size() > 1 && text.front() == '0' ? std::nullopt : number<Number>(text);
}

bool parse_v4(std::string_view text, std::span<std::uint8_t, 4> out) noexcept {
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto const part_end = i < 3 ? text.find('.') : text.size();
        if (part_end == std::string_view::npos) {
            return false;
        }
        auto const part = decimal<std::uint8_t>(text.substr(0, part_end));
        if (!part) {
            return false;
        }
        out[i] = *part;
        text.remove_prefix(std::min(part_end + 1, text.size()));
    }
    return true;
}

/// Reads groups between colons, or none.
/// @param v4_last  whether the last may be an IPv4 address
/// @return how many bytes they are, or nothing where the text or its size is wrong
std::optional<std::size_t> parse_groups(std::string_view text, bool v4_last,
                                        std::span<std::uint8_t> out) noexcept {
    std::size_t used = 0;
    for (bool more = !text.empty(); more;) {
        auto const colon = text.find(':');
        auto const part = text.substr(0, colon);
        more = colon != std::string_view::npos;
        text.remove_prefix(more ? colon + 1 : text.size());
        if (!more && v4_last && part.find('.') != std::string_view::npos) {
            if (out.size() - used < 4 || !parse_v4(part, out.subspan(used).first<4>())) {
                return std::nullopt;
            }
            return used + 4;
        }
        auto const group = number<std::uint16_t>(part, 16);
        if (!group || part.size() > 4 || out.size() - used < 2) {
            return std::nullopt;
        }
        out[used++] = static_cast<std::uint8_t>(*group >> 8);
        out[used++] = static_cast<std::uint8_t>(*group);
    }
    return used;
}

bool parse_v6(std::string_view text, std::span<std::uint8_t, 16> out) noexcept {
    auto const gap = text.find("::");
    if (gap == std::string_view::npos) {
        return parse_groups(text, true, out) == out.size();
    }
    // The gap stands for one group at least.
    std::array<std::uint8_t, 14> tail;
    auto const front = parse_groups(text.substr(0, gap), false, out.first<14>());
    auto const back = parse_groups(text.substr(gap + 2), true, tail);
    if (!front || !back || *front + *back > 14) {
        return false;
    }
    std::ranges::fill(out.subspan(*front), std::uint8_t{0});
    std::ranges::copy(std::span(tail).first(*back), out.last(*back).begin());
    return true;
}

bool is_mapped_v4(std::span<std::uint8_t const> v6) noexcept {
    return std::ranges::all_of(v6.first(10), [](auto byte) { return byte == 0; }) &&
           v6[10] == 0xff && v6[11] == 0xff;
}

char* write_number(char* out, std::unsigned_integral auto value, int base = 10) noexcept {
    return std::to_chars(out, out + 10, value, base).ptr;
}

char* write_v4(char* out, std::span<std::uint8_t const> bytes) noexcept {
    for (std::size_t i = 0; i < 4; ++i) {
        if (i != 0) {
            *out++ = '.';
        }
        out = write_number(out, bytes[i]);
    }
    return out;
}

char* write_v6(char* out, std::span<std::uint8_t const> bytes) noexcept {
    if (is_mapped_v4(bytes)) {
        return write_v4(std::ranges::copy(std::string_view("::ffff:"), out).out, bytes.last(4));
    }
    std::array<std::uint16_t, 8> groups;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        groups[i] = static_cast<std::uint16_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
    }
    // The longest run of two or more zero groups, the first of several such, becomes `::`.
    std::size_t gap = groups.size();
    std::size_t gap_size = 1;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        auto const rest = std::span(groups).subspan(i);
        auto const run = static_cast<std::size_t>(
            std::ranges::find_if(rest, [](auto group) { return group != 0; }) - rest.begin());
        if (run > gap_size) {
            gap = i;
            gap_size = run;
        }
    }
    for (std::size_t i = 0; i < groups.size();) {
        if (i == gap) {
            *out++ = ':';
            *out++ = ':';
            i += gap_size;
            continue;
        }
        if (i != 0 && i != gap + gap_size) {
            *out++ = ':';
        }
        out = write_number(out, groups[i++], 16);
    }
    return out;
}

}  // namespace

result<endpoint> endpoint::parse(std::string_view text) noexcept {
    if (text.starts_with(unix_prefix)) {
        auto const name = text.substr(unix_prefix.size());
        return name.empty()              ? unix_unnamed()
               : name.starts_with('@')   ? unix_abstract(name.substr(1))
               : name.starts_with("./@") ? unix_path(name.substr(2))
                                         : unix_path(name);
    }
    auto const colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return error::not_an_address;
    }
    auto const port = decimal<std::uint16_t>(text.substr(colon + 1));
    auto host = text.substr(0, colon);
    bool const bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    bool const is_v6 = host.find(':') != std::string_view::npos;
    if (!port || bracketed != is_v6) {
        return error::not_an_address;
    }
    return parse_address(host, *port);
}

result<endpoint> endpoint::parse_address(std::string_view host, std::uint16_t port) noexcept {
    endpoint e;
    e.port_ = port;
    if (host.find(':') == std::string_view::npos) {
        if (!parse_v4(host, std::span(e.bytes_).first<4>())) {
            return error::not_an_address;
        }
        return e;
    }
    e.family_ = family_type::ipv6;
    if (auto const percent = host.find('%'); percent != std::string_view::npos) {
        auto const scope = decimal<std::uint32_t>(host.substr(percent + 1));
        if (!scope) {
            return error::not_an_address;
        }
        e.scope_ = *scope;
        host = host.substr(0, percent);
    }
    if (!parse_v6(host, std::span(e.bytes_).first<16>())) {
        return error::not_an_address;
    }
    return e;
}

endpoint endpoint::any_v4(std::uint16_t port) noexcept { return endpoint().with_port(port); }

endpoint endpoint::any_v6(std::uint16_t port) noexcept {
    endpoint e;
    e.family_ = family_type::ipv6;
    return e.with_port(port);
}

endpoint endpoint::loopback_v4(std::uint16_t port) noexcept {
    return from_v4_bytes(std::array<std::uint8_t, 4>{127, 0, 0, 1}, port);
}

endpoint endpoint::loopback_v6(std::uint16_t port) noexcept {
    auto e = any_v6(port);
    e.bytes_[15] = 1;
    return e;
}

endpoint endpoint::from_v4_bytes(std::span<std::uint8_t const, 4> bytes,
                                 std::uint16_t port) noexcept {
    auto e = any_v4(port);
    std::ranges::copy(bytes, e.bytes_.begin());
    return e;
}

endpoint endpoint::from_v6_bytes(std::span<std::uint8_t const, 16> bytes, std::uint16_t port,
                                 std::uint32_t scope) noexcept {
    auto e = any_v6(port);
    std::ranges::copy(bytes, e.bytes_.begin());
    e.scope_ = scope;
    return e;
}

result<endpoint> endpoint::unix_path(std::string_view path) noexcept {
    if (path.empty() || path.find('\0') != std::string_view::npos) {
        return error::not_an_address;
    }
    if (path.size() > most_unix_bytes) {
        return std::make_error_code(std::errc::filename_too_long);
    }
    return from_unix_bytes(
        std::span(reinterpret_cast<std::uint8_t const*>(path.data()), path.size()));
}

result<endpoint> endpoint::unix_abstract(std::string_view name) noexcept {
    if (name.empty()) {
        return error::not_an_address;
    }
    if (name.size() > most_unix_bytes) {
        return std::make_error_code(std::errc::filename_too_long);
    }
    auto e = unix_unnamed();
    std::ranges::copy(name, e.bytes_.begin() + 1);
    e.unix_size_ = static_cast<std::uint8_t>(1 + name.size());
    return e;
}

endpoint endpoint::unix_unnamed() noexcept {
    endpoint e;
    e.family_ = family_type::unix_domain;
    return e;
}

endpoint endpoint::from_unix_bytes(std::span<std::uint8_t const> bytes) noexcept {
    auto e = unix_unnamed();
    e.unix_size_ = static_cast<std::uint8_t>(std::min(bytes.size(), e.bytes_.size()));
    std::ranges::copy(bytes.first(e.unix_size_), e.bytes_.begin());
    return e;
}

endpoint endpoint::with_port(std::uint16_t port) const noexcept {
    auto e = *this;
    e.port_ = family_ == family_type::unix_domain ? 0 : port;
    return e;
}

std::string_view endpoint::path() const noexcept {
    return unix_size_ == 0 || bytes_[0] == 0
               ? std::string_view()
               : std::string_view(reinterpret_cast<char const*>(bytes_.data()), unix_size_);
}

std::string_view endpoint::abstract_name() const noexcept {
    return unix_size_ == 0 || bytes_[0] != 0
               ? std::string_view()
               : std::string_view(reinterpret_cast<char const*>(&bytes_[1]), unix_size_ - 1u);
}

bool endpoint::is_loopback() const noexcept {
    switch (family_) {
    case family_type::ipv4:
        return bytes_[0] == 127;
    case family_type::ipv6:
        return bytes_ == loopback_v6(0).bytes_ || (is_mapped_v4(bytes_) && bytes_[12] == 127);
    case family_type::unix_domain:
        break;
    }
    return false;
}

char* endpoint::to_chars(char* first, char* last) const noexcept {
    std::array<char, most_chars> text;
    char* end = text.data();
    auto const write = [&end](std::string_view more) { end = std::ranges::copy(more, end).out; };
    switch (family_) {
    case family_type::ipv4:
        end = write_v4(end, address_bytes());
        break;
    case family_type::ipv6:
        *end++ = '[';
        end = write_v6(end, address_bytes());
        if (scope_ != 0) {
            *end++ = '%';
            end = write_number(end, scope_);
        }
        *end++ = ']';
        break;
    case family_type::unix_domain:
        write(unix_prefix);
        if (unix_size_ != 0 && bytes_[0] == 0) {
            *end++ = '@';
        } else if (path().starts_with('@')) {
            write("./");
        }
        write(path());
        write(abstract_name());
        break;
    }
    if (family_ != family_type::unix_domain) {
        *end++ = ':';
        end = write_number(end, port_);
    }
    if (last - first < end - text.data()) {
        return nullptr;
    }
    return std::copy(text.data(), end, first);
}

std::string endpoint::to_string() const {
    std::array<char, most_chars> text;
    return {text.data(), to_chars(text.data(), text.data() + text.size())};
}

std::strong_ordering operator<=>(endpoint const& a, endpoint const& b) noexcept {
    return std::tie(a.family_, a.bytes_, a.unix_size_, a.scope_, a.port_) <=>
           std::tie(b.family_, b.bytes_, b.unix_size_, b.scope_, b.port_);
}

}  // namespace plumb

std::size_t std::hash<plumb::endpoint>::operator()(plumb::endpoint const& e) const noexcept {
    std::uint64_t h = 14695981039346656037u;  // FNV-1a
    auto const mix = [&h](std::uint64_t part) { h = (h ^ part) * 1099511628211u; };
    std::ranges::for_each(e.address_bytes(), mix);
    mix(e.port());
    mix(e.scope_id());
    mix(static_cast<std::uint64_t>(e.family()));
    return static_cast<std::size_t>(h);
}
