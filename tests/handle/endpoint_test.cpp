// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/endpoint.hpp>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>

#include <arpa/inet.h>

#include <gtest/gtest.h>

namespace {

using namespace plumb;
using bytes4 = std::array<std::uint8_t, 4>;
using bytes16 = std::array<std::uint8_t, 16>;
constexpr auto ipv4 = endpoint::family_type::ipv4;
constexpr auto ipv6 = endpoint::family_type::ipv6;
constexpr auto unix_domain = endpoint::family_type::unix_domain;

static_assert(sizeof(endpoint) <= 128 && std::is_trivially_copyable_v<endpoint>);

std::string round_trip(std::string_view text) {
    auto const e = endpoint::parse(text);
    return e ? e->to_string() : e.error().message();
}

std::string system_text(int family, void const* bytes) {
    char text[INET6_ADDRSTRLEN];
    return inet_ntop(family, bytes, text, sizeof(text));
}

TEST(endpoint, of_nothing_is_any_v4_address_and_port) {
    EXPECT_EQ(endpoint().to_string(), "0.0.0.0:0");
    EXPECT_EQ(endpoint(), endpoint::any_v4(0));
}

TEST(endpoint, reads_and_writes_what_people_write) {
    auto const v4 = endpoint::parse("192.0.2.1:8080").value();
    EXPECT_EQ(v4.family(), ipv4);
    EXPECT_EQ(v4.port(), 8080);
    EXPECT_EQ(v4.scope_id(), 0u);
    EXPECT_EQ(v4, endpoint::from_v4_bytes(bytes4{192, 0, 2, 1}, 8080));
    auto const v6 = endpoint::parse("[fe80::1%2]:80").value();
    EXPECT_EQ(v6.family(), ipv6);
    EXPECT_EQ(v6.port(), 80);
    EXPECT_EQ(v6.scope_id(), 2u);
    EXPECT_EQ(v6.address_bytes().size(), 16u);
    EXPECT_EQ(v6.to_string(), "[fe80::1%2]:80");
    EXPECT_EQ(endpoint::parse_address("::1", 443), endpoint::loopback_v6(443));
    EXPECT_EQ(endpoint::parse_address("127.0.0.1", 0), endpoint::loopback_v4(0));
    EXPECT_EQ(endpoint::parse_address("fe80::1%2", 80), v6);
}

TEST(endpoint, factories_make_the_known_addresses) {
    EXPECT_EQ(endpoint::any_v4(1).to_string(), "0.0.0.0:1");
    EXPECT_EQ(endpoint::any_v6(2).to_string(), "[::]:2");
    EXPECT_EQ(endpoint::loopback_v4(3).to_string(), "127.0.0.1:3");
    EXPECT_EQ(endpoint::loopback_v6(4).to_string(), "[::1]:4");
    EXPECT_EQ(endpoint::loopback_v6(4).with_port(65535).to_string(), "[::1]:65535");
}

// RFC 5952, section 4 and 5.
TEST(endpoint, writes_ipv6_canonically) {
    EXPECT_EQ(round_trip("[2001:0db8:0000:0000:0001:0000:0000:0001]:1"), "[2001:db8::1:0:0:1]:1");
    EXPECT_EQ(round_trip("[2001:DB8::1]:1"), "[2001:db8::1]:1");
    EXPECT_EQ(round_trip("[2001:db8:0:1:1:1:1:1]:1"), "[2001:db8:0:1:1:1:1:1]:1");
    EXPECT_EQ(round_trip("[2001:0:0:1:0:0:0:1]:1"), "[2001:0:0:1::1]:1");
    EXPECT_EQ(round_trip("[1:2:3:4:5:6:7::]:1"), "[1:2:3:4:5:6:7:0]:1");
    EXPECT_EQ(round_trip("[1:2:3:4:5:6:0:0]:1"), "[1:2:3:4:5:6::]:1");
    EXPECT_EQ(round_trip("[::]:1"), "[::]:1");
    EXPECT_EQ(round_trip("[::ffff:1.2.3.4]:1"), "[::ffff:1.2.3.4]:1");
    EXPECT_EQ(round_trip("[::ffff:102:304]:1"), "[::ffff:1.2.3.4]:1");
    EXPECT_EQ(round_trip("[64:ff9b::1.2.3.4]:1"), "[64:ff9b::102:304]:1");
    EXPECT_EQ(round_trip("[::1%0]:1"), "[::1]:1");
    EXPECT_EQ(round_trip("[fe80::1%4294967295]:1"), "[fe80::1%4294967295]:1");
}

TEST(endpoint, refuses_all_else) {
    for (std::string_view const text : {
             "",
             ":",
             ":80",
             "80",
             "1.2.3.4",
             "1.2.3.4:",
             "1.2.3:80",
             "1.2.3.4.5:80",
             "1.2.3.256:80",
             "1.2.3.04:80",
             "01.2.3.4:80",
             "1.2.3.:80",
             ".1.2.3:80",
             "1..2.3:80",
             "1.2.3.4:65536",
             "1.2.3.4:080",
             "1.2.3.4:-1",
             "1.2.3.4:+1",
             "1.2.3.4: 80",
             "1.2.3.4:80 ",
             " 1.2.3.4:80",
             "1.2.3.4:80x",
             "0x1.2.3.4:80",
             "1.2.3.-4:80",
             "1.2.3.4%1:80",
             "[1.2.3.4]:80",
             "localhost:80",
             "::1:80",
             "[::1]",
             "[::1]:",
             "[::1:80",
             "::1]:80",
             "[]:80",
             "[",
             "[]",
             "[:]:80",
             "[:::]:80",
             "[::1::2]:80",
             "[1::2::3]:80",
             "[1:2:3:4:5:6:7]:80",
             "[1:2:3:4:5:6:7:8:9]:80",
             "[1:2:3:4::5:6:7:8]:80",
             "[1:2:3:4:5:6:7:]:80",
             "[:1:2:3:4:5:6:7]:80",
             "[12345::]:80",
             "[g::]:80",
             "[-1::]:80",
             "[0x1::]:80",
             "[1:2:3:4:5:6:7:1.2.3.4]:80",
             "[1.2.3.4::]:80",
             "[::1.2.3.4:5]:80",
             "[::1.2.3]:80",
             "[::1.2.3.04]:80",
             "[::1%]:80",
             "[::1%eth0]:80",
             "[::1%01]:80",
             "[::1%4294967296]:80",
             "[::1%1%2]:80",
             "[::1 ]:80",
             "[[::1]]:80",
             "[::1]80",
             "[::1]:80]",
         }) {
        EXPECT_EQ(endpoint::parse(text), (result<endpoint>(error::not_an_address))) << text;
    }
    std::string_view const with_null("1.2.3.4:80\0", 11);
    EXPECT_FALSE(endpoint::parse(with_null));
    EXPECT_FALSE(endpoint::parse_address("[::1]", 80));
    EXPECT_FALSE(endpoint::parse_address("", 80));
    EXPECT_FALSE(endpoint::parse_address("1.2.3.4:80", 80));
}

TEST(endpoint, agrees_with_the_system_about_ipv4_text) {
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
        bytes4 bytes;
        for (auto& b : bytes) {
            b = static_cast<std::uint8_t>(random());
        }
        auto const port = static_cast<std::uint16_t>(random());
        auto const e = endpoint::from_v4_bytes(bytes, port);
        auto const text = system_text(AF_INET, bytes.data()) + ":" + std::to_string(port);
        ASSERT_EQ(e.to_string(), text);
        ASSERT_EQ(endpoint::parse(text), e);
    }
}

TEST(endpoint, agrees_with_the_system_about_ipv6_text) {
    std::mt19937 random(2);
    for (int i = 0; i < 50'000; ++i) {
        bytes16 bytes{};
        for (std::size_t group = 0; group < 8; ++group) {  // often zero, so that there are gaps
            if (random() % 2 == 0) {
                bytes[2 * group] = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : 0);
                bytes[2 * group + 1] = static_cast<std::uint8_t>(random());
            }
        }
        auto const e = endpoint::from_v6_bytes(bytes, 80);
        auto const system = system_text(AF_INET6, bytes.data());
        ASSERT_EQ(endpoint::parse_address(system, 80), e) << system;
        ASSERT_EQ(endpoint::parse(e.to_string()), e);
        // The system writes the long deprecated `::1.2.3.4`.
        if (system.find('.') == std::string::npos || system.starts_with("::ffff:")) {
            ASSERT_EQ(e.to_string(), "[" + system + "]:80");
        }
    }
}

TEST(endpoint, accepts_the_ipv6_addresses_that_the_system_does) {
    std::mt19937 random(3);
    constexpr std::string_view pieces[]{":",    "::",      "1",   "ffff", "0",
                                        "0db8", "1.2.3.4", ":2:", "a:b"};
    int accepted = 0;
    for (int i = 0; i < 200'000; ++i) {
        std::string text;
        for (auto n = random() % 12; n != 0; --n) {
            text += pieces[random() % std::size(pieces)];
        }
        if (text.find(':') == std::string::npos) {
            continue;
        }
        bytes16 bytes;
        bool const known = inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1;
        auto const e = endpoint::parse_address(text, 80);
        ASSERT_EQ(e.has_value(), known) << text;
        if (known) {
            ASSERT_EQ(e, endpoint::from_v6_bytes(bytes, 80)) << text;
            ++accepted;
        }
    }
    EXPECT_GT(accepted, 1000);
}

TEST(endpoint, parse_survives_any_bytes) {
    std::mt19937 random(4);
    constexpr std::string_view alphabet = "0123456789abcf:.[]%- \0x";
    for (int i = 0; i < 100'000; ++i) {
        std::string text(random() % 24, ' ');
        for (auto& c : text) {
            c = alphabet[random() % alphabet.size()];
        }
        if (auto const e = endpoint::parse(text)) {
            ASSERT_EQ(endpoint::parse(e->to_string()), e) << text;
        }
    }
}

TEST(endpoint, writes_only_where_there_is_room) {
    bytes16 full;
    full.fill(0xff);
    auto const longest = endpoint::from_v6_bytes(full, 65535, 4294967295u);
    auto const text = longest.to_string();
    EXPECT_EQ(text, "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
    EXPECT_LE(text.size(), endpoint::most_chars);

    std::array<char, endpoint::most_chars> room;
    EXPECT_EQ(longest.to_chars(room.data(), room.data() + text.size()), room.data() + text.size());
    EXPECT_EQ(std::string_view(room.data(), text.size()), text);
    EXPECT_EQ(longest.to_chars(room.data(), room.data() + text.size() - 1), nullptr);
}

TEST(endpoint, knows_the_loopback) {
    for (auto const text : {"127.0.0.1:1", "127.255.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"}) {
        EXPECT_TRUE(endpoint::parse(text)->is_loopback()) << text;
    }
    for (auto const text :
         {"128.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::2]:1", "[7f00::]:1", "[::ffff:126.0.0.1]:1"}) {
        EXPECT_FALSE(endpoint::parse(text)->is_loopback()) << text;
    }
}

TEST(endpoint, of_a_unix_path_is_read_and_written) {
    auto const e = endpoint::parse("unix:/run/a socket").value();
    EXPECT_EQ(e.family(), unix_domain);
    EXPECT_EQ(e.path(), "/run/a socket");
    EXPECT_EQ(e.abstract_name(), "");
    EXPECT_EQ(e.port(), 0);
    EXPECT_EQ(e.with_port(80), e);
    EXPECT_FALSE(e.is_loopback());
    EXPECT_EQ(e, endpoint::unix_path("/run/a socket"));
    for (auto const text : {"unix:/run/a socket", "unix:relative", "unix:a:80", "unix:./@x"}) {
        EXPECT_EQ(round_trip(text), text);
    }
}

TEST(endpoint, of_a_unix_path_that_begins_as_names_do_is_told_from_them) {
    for (std::size_t const size : {std::size_t{1}, std::size_t{2}, endpoint::most_unix_bytes}) {
        std::string path(size, 'x');
        path.front() = '@';
        auto const e = endpoint::unix_path(path).value();
        EXPECT_EQ(e.to_string(), "unix:./" + path);
        EXPECT_EQ(endpoint::parse(e.to_string()), e);
    }
}

TEST(endpoint, of_an_abstract_name_is_read_and_written_and_may_hold_any_byte) {
    std::string_view const name("a\0\xff:", 4);
    auto const e = endpoint::unix_abstract(name).value();
    EXPECT_EQ(e.abstract_name(), name);
    EXPECT_EQ(e.path(), "");
    EXPECT_EQ(e.address_bytes().size(), 5u);
    EXPECT_EQ(e.to_string(), "unix:@" + std::string(name));
    EXPECT_EQ(endpoint::parse(e.to_string()), e);
    EXPECT_NE(endpoint::unix_abstract("a"), endpoint::unix_path("a"));
    EXPECT_NE(endpoint::unix_abstract("a"), endpoint::unix_abstract(std::string_view("a\0", 2)));
}

TEST(endpoint, unnamed_is_neither_a_path_nor_a_name) {
    auto const e = endpoint::unix_unnamed();
    EXPECT_EQ(e.path(), "");
    EXPECT_EQ(e.abstract_name(), "");
    EXPECT_EQ(e.to_string(), "unix:");
    EXPECT_EQ(endpoint::parse("unix:"), e);
    EXPECT_NE(e, endpoint());
}

TEST(endpoint, unix_addresses_that_are_none_are_refused_and_long_ones_are_called_too_long) {
    EXPECT_EQ(endpoint::unix_path("").error(), error::not_an_address);
    EXPECT_EQ(endpoint::unix_path(std::string_view("a\0b", 3)).error(), error::not_an_address);
    EXPECT_EQ(endpoint::unix_abstract("").error(), error::not_an_address);
    EXPECT_EQ(endpoint::parse("unix:@").error(), error::not_an_address);
    std::string const longest(endpoint::most_unix_bytes, 'x');
    EXPECT_EQ(endpoint::unix_path(longest)->path(), longest);
    EXPECT_EQ(endpoint::unix_abstract(longest)->abstract_name(), longest);
    EXPECT_EQ(round_trip("unix:" + longest), "unix:" + longest);
    EXPECT_EQ(round_trip("unix:@" + longest), "unix:@" + longest);
    auto const too_long = std::errc::filename_too_long;
    EXPECT_EQ(endpoint::unix_path(longest + "x").error(), too_long);
    EXPECT_EQ(endpoint::unix_abstract(longest + "x").error(), too_long);
    EXPECT_EQ(endpoint::parse("unix:" + longest + "x").error(), too_long);
}

TEST(endpoint, differs_in_each_of_its_parts_and_hashes_accordingly) {
    auto const of = [](std::string_view text) { return endpoint::parse(text).value(); };
    std::array const ordered{of("0.0.0.1:2"),  of("1.0.0.0:1"), of("1.0.0.0:2"), of("1.0.0.1:1"),
                             of("[::1]:1"),    of("[::1]:2"),   of("[::1%1]:1"), of("[100:0::]:1"),
                             of("[ffff::]:1"), of("unix:"),     of("unix:@a"),   of("unix:@ab"),
                             of("unix:/"),     of("unix:/a")};
    std::unordered_set<std::size_t> hashes;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        for (std::size_t k = 0; k < ordered.size(); ++k) {
            EXPECT_EQ(ordered[i] <=> ordered[k], i <=> k);
            EXPECT_EQ(ordered[i] == ordered[k], i == k);
        }
        hashes.insert(std::hash<endpoint>()(ordered[i]));
    }
    EXPECT_EQ(hashes.size(), ordered.size());
    // The same bytes of another family.
    EXPECT_NE(endpoint::any_v4(0), endpoint::any_v6(0));
}

}  // namespace
