// SPDX-License-Identifier: Apache-2.0
//
// asio's coroutines; errors as values.
#include "../asio_tcp.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace {

constexpr auto as_value = asio::as_tuple(asio::use_awaitable_t<executor>());

asio::awaitable<void, executor> tcp_reader(asio::io_context& context, reader_options o,
                                           int& status) {
    std::array<char, reader_most_block> buffer;
    tcp_socket socket(context);
    auto [failed] = co_await socket.async_connect(endpoint_of(o), as_value);
    if (failed) {
        reader_fail("connect", failed.message().c_str());
    }
    reader_meter meter = reader_begin(&o);
    for (;;) {
        auto const [error, bytes] =
            co_await socket.async_read_some(asio::buffer(buffer, o.block), as_value);
        if (error) {
            reader_fail("read", error.message().c_str());
        }
        if (!reader_count(&meter, bytes)) {
            status = reader_report(&meter);
            co_return;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    int status = 1;
    asio::io_context context(1);
    asio::co_spawn(context.get_executor(),
                   tcp_reader(context, reader_parse_options(argc, argv), status), asio::detached);
    context.run();
    return status;
}
