// SPDX-License-Identifier: Apache-2.0
//
// An echo server in the style of the Networking TS, with callbacks: a session for each connection,
// which keeps itself alive by the handlers that wait. The library below it is examples/networking_ts,
// which is written on plumb's public headers alone.
//
//   cmake --preset dev && cmake --build --preset dev --target example_networking_ts_echo_server
//   build/dev/examples/networking_ts_echo_server
//
// In another terminal, with the port that it printed:
//
//   build/dev/examples/networking_ts_echo_client 127.0.0.1 PORT hello

#include "networking_ts/async_write.hpp"
#include "networking_ts/io_context.hpp"
#include "networking_ts/ip/tcp.hpp"
#include "networking_ts/steady_timer.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

namespace net = networking_ts;
using net::ip::tcp;

class session : public std::enable_shared_from_this<session> {
public:
    explicit session(tcp::socket s) : socket_(std::move(s)) {}

    void start() { read(); }

private:
    void read() {
        socket_.async_read_some(net::buffer(data_),
                                [self = shared_from_this()](std::error_code error, std::size_t n) {
                                    if (!error) {
                                        self->write(n);
                                    }
                                });
    }

    void write(std::size_t n) {
        net::async_write(socket_, net::buffer(data_, n),
                         [self = shared_from_this()](std::error_code error, std::size_t) {
                             if (!error) {
                                 self->read();
                             }
                         });
    }

    tcp::socket socket_;
    std::array<char, 4096> data_;
};

class server {
public:
    server(net::io_context& context, tcp::endpoint const& where)
        : acceptor_(context, where), pause_(context) {
        accept();
    }
    [[nodiscard]] tcp::endpoint local_endpoint() const { return acceptor_.local_endpoint(); }

private:
    void accept() {
        acceptor_.async_accept([this](std::error_code error, tcp::socket peer) {
            if (!error) {
                std::make_shared<session>(std::move(peer))->start();
                accept();
                return;
            }
            // Such as a full descriptor table: at once again would spin.
            pause_.expires_after(std::chrono::milliseconds(20));
            pause_.async_wait([this](std::error_code) { accept(); });
        });
    }

    tcp::acceptor acceptor_;
    net::steady_timer pause_;
};

int main() {
    try {
        net::io_context context;
        server const s(context, tcp::endpoint(net::ip::make_address("127.0.0.1"), 0));
        auto const where = s.local_endpoint();
        std::cout << "listening on " << where.address().to_string() << ':' << where.port()
                  << std::endl;
        context.run();
    } catch (std::exception const& e) {
        std::cerr << "networking_ts_echo_server: " << e.what() << '\n';
        return 1;
    }
}
