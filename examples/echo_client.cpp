// SPDX-License-Identifier: Apache-2.0
//
// A client: connects within two seconds, sends its words, and prints what comes back until the
// peer has no more to say. What fails is an exception with a sentence; here it ends the program.
//
//   cmake --preset dev && cmake --build --preset dev --target example_echo_client
//   build/dev/examples/echo_client 127.0.0.1 PORT hello world
//
// where PORT is what build/dev/examples/echo_server or `build/dev/plumb echo` prints.

#include <plumb/aio/open_connection.hpp>
#include <plumb/aio/run.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

using namespace std::chrono_literals;

plumb::task<> talk(std::string_view host, std::uint16_t port, std::string words) {
    auto peer = co_await plumb::aio::open_connection(host, port, 2s);
    co_await peer.write(words);
    peer.write_eof();
    auto const answer = co_await peer.read(10s);
    std::cout << answer.view() << '\n';
}

int main(int argc, char** argv) {
    std::uint16_t port = 0;
    std::string_view const port_text = argc < 4 ? "" : argv[2];
    auto const parsed =
        std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    if (port_text.empty() || parsed.ec != std::errc() || *parsed.ptr != '\0') {
        std::cerr << "usage: echo_client ADDRESS PORT WORD...\n";
        return 2;
    }
    std::string words = argv[3];
    for (int i = 4; i < argc; ++i) {
        words.append(" ").append(argv[i]);
    }
    try {
        plumb::aio::run(talk(argv[1], port, std::move(words)));
    } catch (std::exception const& e) {
        std::cerr << "echo_client: " << e.what() << '\n';
        return 1;
    }
}
