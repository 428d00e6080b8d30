// SPDX-License-Identifier: Apache-2.0
//
// The level below coroutines: senders, receivers and operations. A read of a pipe is connected with
// a receiver, started, polled by hand, and completed by the multiplexer. All the memory that the
// read uses is in the operation on the stack; nothing is allocated and nothing thrown.
//
//   cmake --preset dev && cmake --build --preset dev --target example_pipe_senders
//   build/dev/examples/pipe_senders

#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include <array>
#include <cstdio>
#include <string_view>

using namespace plumb;

// Told the result as soon as it is there, then that the operation may be reused or destroyed.
struct print_receiver {
    int* told;

    void set_value(io_result<buffers>&& read) noexcept {
        if (!read) {
            std::printf("the read failed: %s\n", read.error().message().c_str());
            return;
        }
        for (buffer const& filled : *read) {
            std::printf("read %zu bytes: %.*s\n", filled.size(), static_cast<int>(filled.size()),
                        reinterpret_cast<char const*>(filled.data()));
        }
    }
    void set_done() noexcept { ++*told; }
};

int main() {
    auto pipe = pipe_handle::anonymous_pipe();
    if (!pipe) {
        std::printf("no pipe: %s\n", pipe.error().message().c_str());
        return 1;
    }
    std::array<char, 64> room;
    int told = 0;
    auto reading = connect(async_read(pipe->reader, buffer(room)), print_receiver{&told});

    // Nothing is there yet.
    bool const waits =
        reading.start() == io_status::pending && reading.poll() == io_status::pending;
    std::printf("started; the read waits: %s\n", waits ? "yes" : "no");

    // Written by hand, polled by hand: the receiver is called from inside `poll`.
    auto const first = pipe->writer.write(std::string_view("polled"));
    bool const polled = first && reading.poll() == io_status::completed;

    // The same operation again, completed by the multiplexer of this thread.
    reading.reset();
    reading.start();
    auto const second = pipe->writer.write(std::string_view("multiplexed"));
    auto const ran = io_multiplexer::this_thread().run();
    return waits && polled && second && ran && told == 2 ? 0 : 1;
}
