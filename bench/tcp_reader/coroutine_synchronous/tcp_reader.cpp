// SPDX-License-Identifier: Apache-2.0
//
// plumb's co_read, which doesn't suspend while reads are over at once.
#include "../coroutine.hpp"

namespace {

plumb::task<int> tcp_reader(reader_options o) {
    std::byte buffer[reader_most_block];
    auto socket =
        plumb::stream_socket_handle::stream_socket(plumb::endpoint::family_type::ipv4).value();
    (co_await socket.co_connect(plumb::endpoint::loopback_v4(o.port))).value();
    reader_meter meter = reader_begin(&o);
    for (;;) {
        auto const got = co_await socket.co_read({buffer, o.block});
        if (!reader_count(&meter, got.value().bytes())) {
            co_return reader_report(&meter);
        }
    }
}

}  // namespace

int main(int argc, char** argv) { return run_reader(argc, argv, &tcp_reader); }
