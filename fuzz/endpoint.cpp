// SPDX-License-Identifier: Apache-2.0
// The text of endpoints, both ways: any text is an endpoint or a clear error, and what is written is read again.
#include <plumb/handle/endpoint.hpp>

#include <plumb/base/error.hpp>

#include "input.hpp"

#include <array>
#include <string>

using plumb::endpoint;
using plumb::fuzz::check;

namespace {

bool is_clear(std::error_code e) {
    return e == plumb::error::not_an_address || e == std::errc::filename_too_long;
}

void is_read_as_it_is_written(endpoint const& e) {
    std::string const text = e.to_string();
    check(text.size() <= endpoint::most_chars, "there is room for the text of any endpoint");
    std::array<char, endpoint::most_chars> room;
    char* const end = e.to_chars(room.data(), room.data() + text.size());
    check(end == room.data() + text.size() && std::equal(room.data(), end, text.begin()),
          "both ways of writing agree");
    check(text.empty() || e.to_chars(room.data(), room.data() + text.size() - 1) == nullptr,
          "nothing is written where there is no room");
    auto const again = endpoint::parse(text);
    check(static_cast<bool>(again), "what is written can be read");
    if (e.path().starts_with("./@")) {
        check(again->path() == e.path().substr(2), "it is read as the same file");
    } else {
        check(*again == e, "what is written is read as the same");
        check((*again <=> e) == std::strong_ordering::equal, "equality and order agree");
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    plumb::fuzz::input in(data, size);
    auto const how = in.take<std::uint8_t>();
    auto const port = in.take<std::uint16_t>();
    plumb::result<endpoint> made;
    switch (how % 6) {
    case 0:
        made = endpoint::parse_address(in.take_all(), port);
        break;
    case 1:
        made = endpoint::unix_path(in.take_all());
        break;
    case 2:
        made = endpoint::unix_abstract(in.take_all());
        break;
    case 3: {
        std::array<std::uint8_t, 16> bytes;
        std::ranges::generate(bytes, [&] { return in.take<std::uint8_t>(); });
        made = endpoint::from_v6_bytes(bytes, port, in.take<std::uint32_t>());
        break;
    }
    case 4: {
        std::array<std::uint8_t, 4> bytes;
        std::ranges::generate(bytes, [&] { return in.take<std::uint8_t>(); });
        made = endpoint::from_v4_bytes(bytes, port);
        break;
    }
    default:
        made = endpoint::parse(
            std::string_view(reinterpret_cast<char const*>(data), size).substr(size != 0));
    }
    if (made) {
        is_read_as_it_is_written(*made);
    } else {
        check(is_clear(made.error()), "an error is one of the two that are promised");
    }
    return 0;
}
