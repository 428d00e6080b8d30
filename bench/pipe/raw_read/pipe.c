// SPDX-License-Identifier: Apache-2.0
//
// read(2) in a loop: what everything else is measured by.
#include "../pipe.h"

int main(int argc, char** argv) {
    struct pipe_options options = pipe_parse_options(argc, argv);
    int readers[pipe_most];
    int writers[pipe_most];
    for (int i = 0; i < options.pipes; ++i) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            pipe_fail("pipe2");
        }
        readers[i] = ends[0];
        writers[i] = ends[1];
    }
    struct pipe_writer writer;
    pipe_begin(&writer, writers, options.pipes);
    struct pipe_meter meter = pipe_meter_of(&options);
    int next = 0;
    do {
        char byte;
        if (read(readers[next], &byte, 1) != 1) {
            pipe_fail("read");
        }
        next = next + 1 == options.pipes ? 0 : next + 1;
    } while (pipe_count(&meter));
    pipe_report(&meter);
    for (int i = 0; i < options.pipes; ++i) {
        close(readers[i]);
    }
    pipe_end(&writer);
    return 0;
}
