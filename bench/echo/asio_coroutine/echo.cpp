// SPDX-License-Identifier: Apache-2.0
//
// The echo server on asio with coroutines. Chosen for speed: threads disabled when compiled, the
// io_context's own executor instead of a type-erased one, errors as values instead of exceptions,
// and `async_write_some` with its own loop instead of the composed `async_write`.
#define BOOST_ASIO_DISABLE_THREADS
#include "../echo.h"

#include <array>
#include <csignal>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;
using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;
template <class T>
using awaitable = asio::awaitable<T, executor>;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable_t<executor>{});

class server {
public:
    server(asio::io_context& context, echo_options const& options)
        : context_(context),
          acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), options.port), true),
          most_requests_(options.max_requests) {
        acceptor_.listen(echo_backlog);
        asio::co_spawn(context, accept(), asio::detached);
    }

    std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    std::uint64_t requests() const { return requests_; }

private:
    awaitable<void> accept() {
        for (;;) {
            auto [error, socket] = co_await acceptor_.async_accept(as_result);
            if (error) {
                accept_paused_ = true;  // the descriptor table is full: at once again would spin
                co_return;
            }
            socket.set_option(tcp::no_delay(true), error);
            asio::co_spawn(context_, serve(std::move(socket)), asio::detached);
        }
    }

    awaitable<void> serve(tcp_socket socket) {
        co_await echo(socket);
        socket.close();
        if (accept_paused_) {
            accept_paused_ = false;
            asio::co_spawn(context_, accept(), asio::detached);
        }
    }

    awaitable<void> echo(tcp_socket& socket) {
        std::array<char, 1024> data;
        for (;;) {
            auto [error, size] = co_await socket.async_read_some(asio::buffer(data), as_result);
            if (error) {
                co_return;
            }
            for (std::size_t begin = 0; begin != size;) {
                auto const rest = asio::buffer(data.data() + begin, size - begin);
                auto [failed, written] = co_await socket.async_write_some(rest, as_result);
                if (failed) {
                    co_return;
                }
                begin += written;
            }
            if (++requests_ == most_requests_) {
                context_.stop();
            }
        }
    }

    asio::io_context& context_;
    tcp_acceptor acceptor_;
    std::uint64_t most_requests_;
    std::uint64_t requests_ = 0;
    bool accept_paused_ = false;
};

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
