// SPDX-License-Identifier: Apache-2.0
#include "cat_address.hpp"

#include <plumb/aio/open_connection.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <stdexcept>
#include <system_error>

using namespace plumb;

namespace {

using kind = cat_address::kind_type;

struct scheme {
    std::string_view name;
    cat_address::kind_type kind;
    bool is_unix;
};

constexpr scheme schemes[]{
    {"file", kind::file, false},
    {"pipe", kind::pipe, false},
    {"tcp", kind::connect, false},
    {"tcp-listen", kind::listen, false},
    {"unix", kind::connect, true},
    {"unix-listen", kind::listen, true},
    {"udp", kind::datagrams, false},
    {"udp-listen", kind::datagrams_of_first_sender, false},
    {"unix-datagram", kind::datagrams, true},
    {"unix-datagram-listen", kind::datagrams_of_first_sender, true},
};

/// `host:port`, or for what listens a port alone, which is one of this machine's own.
endpoint host_and_port(std::string_view text, bool port_alone) {
    auto const colon = text.rfind(':');
    bool const has_host = colon != std::string_view::npos;
    auto const digits = has_host ? text.substr(colon + 1) : text;
    std::uint16_t port = 0;
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
        (!has_host && !port_alone)) {
        throw std::invalid_argument(port_alone ? "it needs HOST:PORT or PORT"
                                               : "it needs HOST:PORT");
    }
    if (!has_host) {
        return endpoint::loopback_v4(port);
    }
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    try {
        return aio::endpoint_of(host, port);
    } catch (std::system_error const& refused) {
        throw std::invalid_argument(refused.what());
    }
}

endpoint unix_name(std::string_view text) {
    auto const parsed = endpoint::parse(fmt::format("unix:{}", text));
    if (!parsed || text.empty()) {
        throw std::invalid_argument(parsed ? "it needs a path, or @ and a name"
                                           : parsed.error().message());
    }
    return *parsed;
}

}  // namespace

cat_address cat_address::parse(std::string_view text) try {
    cat_address made;
    made.text = text;
    if (text == "-") {
        return made;
    }
    auto const colon = text.find(':');
    auto const rest = text.substr(std::min(colon, text.size() - 1) + 1);
    auto const found = std::ranges::find(schemes, text.substr(0, colon), &scheme::name);
    if (colon == std::string_view::npos || found == std::end(schemes)) {
        throw std::invalid_argument("it begins with none of -, file:, pipe:, tcp:, tcp-listen:, "
                                    "unix:, unix-listen:, udp:, udp-listen:, unix-datagram: "
                                    "and unix-datagram-listen:");
    }
    made.kind = found->kind;
    if (made.kind == kind::file || made.kind == kind::pipe) {
        if (rest.empty()) {
            throw std::invalid_argument("it needs a path");
        }
        made.path = rest;
    } else if (found->is_unix) {
        made.where = unix_name(rest);
    } else {
        made.where = host_and_port(rest, made.kind == kind::listen ||
                                             made.kind == kind::datagrams_of_first_sender);
    }
    return made;
} catch (std::invalid_argument const& why) {
    throw std::invalid_argument(fmt::format("'{}': {}", text, why.what()));
}
