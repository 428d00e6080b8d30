// SPDX-License-Identifier: Apache-2.0
//
// The echo server on asio with callbacks. Chosen for speed: threads disabled when compiled, the
// io_context's own executor instead of a type-erased one, and `async_write_some` with its own loop
// instead of the composed `async_write`.
#define BOOST_ASIO_DISABLE_THREADS
#include "../echo.h"

#include <array>
#include <csignal>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;
using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;

namespace {

class server {
public:
    server(asio::io_context& context, echo_options const& options)
        : context_(context),
          acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), options.port), true),
          most_requests_(options.max_requests) {
        acceptor_.listen(echo_backlog);
        accept();
    }

    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    std::uint64_t requests() const { return requests_; }

    void count_request() {
        if (++requests_ == most_requests_) {
            context_.stop();
        }
    }

    void on_connection_ended() {
        if (accept_paused_) {
            accept_paused_ = false;
            accept();
        }
    }

private:
    void accept();

    asio::io_context& context_;
    tcp_acceptor acceptor_;
    std::uint64_t most_requests_;
    std::uint64_t requests_ = 0;
    bool accept_paused_ = false;
};

/// One connection; owns itself and goes when its read or write fails.
class session {
public:
    session(tcp_socket socket, server& owner) : socket_(std::move(socket)), owner_(owner) {}

    void read() {
        socket_.async_read_some(asio::buffer(data_), [this](error_code error, std::size_t size) {
            if (error) {
                end();
                return;
            }
            begin_ = 0;
            end_ = size;
            write();
        });
    }

private:
    void write() {
        auto const rest = asio::buffer(data_.data() + begin_, end_ - begin_);
        socket_.async_write_some(rest, [this](error_code error, std::size_t size) {
            if (error) {
                end();
                return;
            }
            begin_ += size;
            if (begin_ != end_) {
                write();
                return;
            }
            owner_.count_request();
            read();
        });
    }

    void end() {
        server& owner = owner_;
        delete this;
        owner.on_connection_ended();
    }

    tcp_socket socket_;
    server& owner_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::array<char, 1024> data_;
};

void server::accept() {
    acceptor_.async_accept([this](error_code error, tcp_socket socket) {
        if (error) {
            accept_paused_ = true;  // the descriptor table is full: at once again would spin
            return;
        }
        socket.set_option(tcp::no_delay(true), error);
        (new session(std::move(socket), *this))->read();
        accept();
    });
}

}  // namespace

int main(int argc, char** argv) {
    echo_options options{};
    echo_parse_options(argc, argv, &options);
    try {
        asio::io_context context(1);
        asio::signal_set signals(context, SIGINT, SIGTERM);
        signals.async_wait([&](error_code, int) { context.stop(); });
        server echo(context, options);
        echo_print_listening(echo.port());
        context.run();
        echo_print_result(echo.requests(), nullptr);
        return 0;
    } catch (std::exception const& error) {
        std::fprintf(stderr, "echo: %s\n", error.what());
        return 1;
    }
}
