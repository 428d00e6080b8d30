// SPDX-License-Identifier: Apache-2.0
//
// plumb's polled senders: each pipe has one connection, which is started, polled and reset; where a read isn't over
// at once the thread's multiplexer waits for it.
#include "../plumb_pipes.hpp"

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>

namespace {

struct receiver {
    void set_value(plumb::io_result<plumb::buffers>&& got) noexcept {
        if (got.bytes_transferred() != 1) {
            plumb_pipes::fail(got.error());
        }
    }
    void set_done() noexcept {}
};

}  // namespace

int main(int argc, char** argv) {
    plumb_pipes pipes(pipe_parse_options(argc, argv));
    std::byte byte;
    std::vector<plumb::io_operation_connection<plumb::async_read, receiver>> reads;
    reads.reserve(pipes.readers.size());
    for (auto& reader : pipes.readers) {
        reads.push_back(plumb::connect(plumb::async_read(reader, {&byte, 1}), receiver()));
    }
    auto next = reads.begin();
    do {
        next->start();
        while (next->poll() == plumb::io_status::pending) {
            (void)plumb::io_multiplexer::this_thread().run();
        }
        next->reset();
        if (++next == reads.end()) {
            next = reads.begin();
        }
    } while (pipe_count(&pipes.meter) != 0);
}
