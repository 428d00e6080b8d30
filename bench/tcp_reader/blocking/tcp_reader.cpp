// SPDX-License-Identifier: Apache-2.0
//
// plumb's blocking read in a loop.
#include "../tcp_reader.h"

#include <plumb/handle/stream_socket_handle.hpp>

namespace {

int tcp_reader(reader_options o) {
    static std::byte buffer[reader_most_block];
    auto socket =
        plumb::stream_socket_handle::stream_socket(plumb::endpoint::family_type::ipv4).value();
    socket.connect(plumb::endpoint::loopback_v4(o.port)).value();
    reader_meter meter = reader_begin(&o);
    for (;;) {
        auto const got = socket.read({buffer, o.block});
        if (!reader_count(&meter, got.value().bytes())) {
            return reader_report(&meter);
        }
    }
}

}  // namespace

int main(int argc, char** argv) { return tcp_reader(reader_parse_options(argc, argv)); }
