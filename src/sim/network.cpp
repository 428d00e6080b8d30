// SPDX-License-Identifier: Apache-2.0
#include "sim/network.hpp"

#include "sim/bound_socket.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

namespace plumb::sim {
namespace {

constexpr std::uint16_t first_free_port = 32'768;
constexpr std::uint16_t free_ports = 28'232;  // as on Linux

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_v4(endpoint const& e) noexcept { return e.family() == endpoint::family_type::ipv4; }

bool same_address(endpoint const& a, endpoint const& b) noexcept {
    return a.with_port(0) == b.with_port(0);
}

/// Whether there is a connection that sockets at both could be meant by.
bool overlap(endpoint const& a, endpoint const& b) noexcept {
    // IPv6's unspecified address stands for IPv4, too.
    auto const stands_for = [](endpoint const& any, endpoint const& other) {
        return network::is_any(any) && (is_v4(any) == is_v4(other) || !is_v4(any));
    };
    return a.port() == b.port() && (same_address(a, b) || stands_for(a, b) || stands_for(b, a));
}

}  // namespace

endpoint network::kept(endpoint const& e) noexcept {
    auto const bytes = e.address_bytes();
    if (!is_v4(e) && std::equal(mapped_prefix.begin(), mapped_prefix.end(), bytes.begin())) {
        return endpoint::from_v4_bytes(bytes.last<4>(), e.port());
    }
    return e;
}

endpoint network::shown(endpoint const& kept, endpoint::family_type f) noexcept {
    if (f == kept.family() || !is_v4(kept)) {
        return kept;
    }
    std::array<std::uint8_t, 16> bytes{};
    std::ranges::copy(mapped_prefix, bytes.begin());
    std::ranges::copy(kept.address_bytes(), bytes.begin() + mapped_prefix.size());
    return endpoint::from_v6_bytes(bytes, kept.port(), 0);
}

bool network::is_any(endpoint const& kept) noexcept {
    return std::ranges::all_of(kept.address_bytes(), [](std::uint8_t b) { return b == 0; });
}

endpoint network::destination(endpoint const& kept) noexcept {
    if (!is_any(kept)) {
        return kept;
    }
    return is_v4(kept) ? endpoint::loopback_v4(kept.port()) : endpoint::loopback_v6(kept.port());
}

endpoint network::source(endpoint const& destination) noexcept {
    return is_v4(destination) && destination.is_loopback() ? endpoint::loopback_v4(0)
                                                           : destination.with_port(0);
}

bool network::is_free(bound_socket const& s, endpoint const& where) const {
    auto const [first, last] = ports_.equal_range({s.kind(), where.port()});
    return std::none_of(first, last, [&](auto const& entry) {
        bound_socket const& other = *entry.second;
        bool const share = (s.reuses_address() && other.reuses_address() && !other.listening()) ||
                           (s.reuses_port() && other.reuses_port());
        return !share && overlap(other.kept_local(), where);
    });
}

outcome network::take_port(bound_socket& s, endpoint const& where, endpoint& taken) {
    auto port = where.port();
    if (port != 0) {
        if (!is_free(s, where)) {
            return failed_with(std::errc::address_in_use);
        }
    } else {
        for (int tries = 0; port == 0; ++tries) {
            if (tries == free_ports) {
                return failed_with(std::errc::address_in_use);
            }
            auto const candidate = static_cast<std::uint16_t>(first_free_port + next_free_);
            next_free_ = static_cast<std::uint16_t>((next_free_ + 1) % free_ports);
            port = ports_.contains({s.kind(), candidate}) ? 0 : candidate;
        }
    }
    taken = where.with_port(port);
    share_port(s);
    return 0;
}

void network::share_port(bound_socket& s) {
    ports_.emplace(port_key(s.kind(), s.kept_local().port()), &s);
}

void network::leave_port(bound_socket& s) noexcept {
    auto const [first, last] = ports_.equal_range({s.kind(), s.kept_local().port()});
    auto const found =
        std::find_if(first, last, [&](auto const& entry) { return entry.second == &s; });
    if (found != last) {
        ports_.erase(found);
    }
}

outcome network::take_name(bound_socket& s, endpoint const& where, endpoint& taken) {
    auto name = where;
    while (name.address_bytes().empty()) {
        std::array<char, 6> text;  // five digits, as on Linux
        std::snprintf(text.data(), text.size(), "%05x", unnamed_++ % 0x10'0000);
        name = *endpoint::unix_abstract(std::string_view(text.data(), 5));
        name = names_.contains(name) ? where : name;
    }
    if (!names_.emplace(name, &s).second) {
        return failed_with(std::errc::address_in_use);
    }
    taken = name;
    return 0;
}

void network::leave_name(bound_socket& s) noexcept {
    auto const entry = names_.find(s.kept_local());
    if (entry == names_.end()) {
        return;
    }
    if (s.kept_local().path().empty()) {
        names_.erase(entry);
    } else {
        entry->second = nullptr;
    }
}

outcome network::find_name(endpoint const& where, handle_kind kind, bound_socket*& found) const {
    auto const entry = names_.find(where);
    if (entry == names_.end() && !where.path().empty()) {
        return failed_with(std::errc::no_such_file_or_directory);
    }
    if (entry == names_.end() || entry->second == nullptr) {
        return failed_with(std::errc::connection_refused);
    }
    if (entry->second->kind() != kind) {
        return failed_with(std::errc::wrong_protocol_type);
    }
    found = entry->second;
    return 0;
}

bool network::is_listened_to(bound_socket const& s) const {
    auto const [first, last] = ports_.equal_range({s.kind(), s.kept_local().port()});
    return std::any_of(first, last, [&](auto const& entry) {
        bound_socket const& other = *entry.second;
        return &other != &s && other.listening() && !(s.reuses_port() && other.reuses_port()) &&
               overlap(other.kept_local(), s.kept_local());
    });
}

bound_socket* network::receiver(handle_kind kind, endpoint const& source,
                                endpoint const& destination) {
    // The one that is bound most narrowly; among equals, which share the port, any.
    std::vector<bound_socket*> best;
    int best_rank = 0;
    auto const [first, last] = ports_.equal_range({kind, destination.port()});
    for (auto entry = first; entry != last; ++entry) {
        bound_socket& s = *entry->second;
        int const interest = s.interest(source);
        if (interest == 0 || !overlap(s.kept_local(), destination)) {
            continue;
        }
        bool const narrow = !is_any(s.kept_local());
        int const rank = 3 * interest + (narrow                                            ? 2
                                         : s.kept_local().family() == destination.family() ? 1
                                                                                           : 0);
        if (rank > best_rank) {
            best.clear();
            best_rank = rank;
        }
        if (rank == best_rank) {
            best.push_back(&s);
        }
    }
    if (best.size() > 1) {
        return best[static_cast<std::size_t>(around_.pick.below(best.size()))];
    }
    return best.empty() ? nullptr : best.front();
}

void network::set_silent(endpoint const& where, bool silent) {
    if (silent) {
        silent_.insert(kept(where));
    } else {
        silent_.erase(kept(where));
    }
}

bool network::is_silent(endpoint const& destination) const {
    return silent_.contains(destination) || silent_.contains(destination.with_port(0));
}

}  // namespace plumb::sim
