// SPDX-License-Identifier: Apache-2.0
//
// plumb's co_read in a coroutine's loop.
#include "../plumb_pipes.hpp"

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

namespace {

plumb::task<> read_all(plumb_pipes& pipes) {
    auto next = pipes.readers.begin();
    do {
        std::byte byte;
        auto const got = co_await next->co_read({&byte, 1});
        if (got.bytes_transferred() != 1) {
            plumb_pipes::fail(got.error());
        }
        if (++next == pipes.readers.end()) {
            next = pipes.readers.begin();
        }
    } while (pipe_count(&pipes.meter) != 0);
}

}  // namespace

int main(int argc, char** argv) {
    plumb_pipes pipes(pipe_parse_options(argc, argv));
    plumb::io_context context;
    plumb::async_run(context.get_executor(), read_all(pipes));
    return context.run() ? 0 : 1;
}
