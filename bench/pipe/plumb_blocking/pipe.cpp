// SPDX-License-Identifier: Apache-2.0
//
// plumb's blocking read in a loop.
#include "../plumb_pipes.hpp"

int main(int argc, char** argv) {
    plumb_pipes pipes(pipe_parse_options(argc, argv));
    auto next = pipes.readers.begin();
    do {
        std::byte byte;
        auto const got = next->read({&byte, 1});
        if (got.bytes_transferred() != 1) {
            plumb_pipes::fail(got.error());
        }
        if (++next == pipes.readers.end()) {
            next = pipes.readers.begin();
        }
    } while (pipe_count(&pipes.meter) != 0);
}
