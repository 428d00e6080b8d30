// SPDX-License-Identifier: Apache-2.0
//
// A client in the style of the Networking TS: sends its words as a line, prints the line that comes
// back, and gives up after ten seconds, when a timer closes the socket.
//
//   cmake --preset dev && cmake --build --preset dev --target example_networking_ts_echo_client
//   build/dev/examples/networking_ts_echo_client 127.0.0.1 PORT hello world
//
// where PORT is what build/dev/examples/networking_ts_echo_server prints.

#include "networking_ts/async_read_until.hpp"
#include "networking_ts/async_write.hpp"
#include "networking_ts/io_context.hpp"
#include "networking_ts/ip/tcp.hpp"
#include "networking_ts/steady_timer.hpp"

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace net = networking_ts;
using net::ip::tcp;

class client {
public:
    client(net::io_context& context, std::string line)
        : socket_(context), timer_(context, std::chrono::seconds(10)), line_(std::move(line)) {}

    void start(tcp::endpoint const& server) {
        timer_.async_wait([this](std::error_code error) {
            if (!error) {
                socket_.close();
            }
        });
        socket_.async_connect(server, [this](std::error_code error) {
            if (go_on(error)) {
                write();
            }
        });
    }

    [[nodiscard]] std::error_code error() const { return error_; }
    [[nodiscard]] std::string const& answer() const { return answer_; }

private:
    void write() {
        net::async_write(socket_, net::buffer(line_), [this](std::error_code error, std::size_t) {
            if (go_on(error)) {
                read();
            }
        });
    }
    void read() {
        net::async_read_until(socket_, net::dynamic_buffer(answer_), '\n',
                              [this](std::error_code error, std::size_t n) {
                                  if (go_on(error)) {
                                      answer_.resize(n);
                                      end();
                                  }
                              });
    }
    bool go_on(std::error_code error) {
        if (error) {
            error_ = error;
            end();
        }
        return !error;
    }
    void end() {
        timer_.cancel();
        socket_.close();
    }

    tcp::socket socket_;
    net::steady_timer timer_;
    std::string line_;
    std::string answer_;
    std::error_code error_;
};

int main(int argc, char** argv) {
    std::uint16_t port = 0;
    std::string_view const port_text = argc < 4 ? "" : argv[2];
    auto const parsed =
        std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
    if (port_text.empty() || parsed.ec != std::errc() || *parsed.ptr != '\0') {
        std::cerr << "usage: networking_ts_echo_client ADDRESS PORT WORD...\n";
        return 2;
    }
    std::string line = argv[3];
    for (int i = 4; i < argc; ++i) {
        line.append(" ").append(argv[i]);
    }
    line += '\n';
    try {
        net::io_context context;
        client c(context, line);
        c.start(tcp::endpoint(net::ip::make_address(argv[1]), port));
        context.run();
        if (c.error()) {
            std::cerr << "networking_ts_echo_client: " << c.error().message() << '\n';
            return 1;
        }
        std::cout << c.answer();
    } catch (std::exception const& e) {
        std::cerr << "networking_ts_echo_client: " << e.what() << '\n';
        return 1;
    }
}
