// SPDX-License-Identifier: Apache-2.0
//
// asio's coroutines, compiled for one thread; errors as values.
#define BOOST_ASIO_DISABLE_THREADS
#include "../asio_pipe.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace {

constexpr auto as_value = asio::as_tuple(asio::use_awaitable_t<executor>());

asio::awaitable<void, executor> read_all(asio_pipe& pipe) {
    for (;;) {
        auto const [error, size] =
            co_await pipe.reader.async_read_some(asio::buffer(&pipe.byte, 1), as_value);
        if (!pipe.count(error)) {
            co_return;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    asio_pipe pipe(pipe_parse_options(argc, argv));
    asio::co_spawn(pipe.context.get_executor(), read_all(pipe), asio::detached);
    pipe.context.run();
    return 0;
}
