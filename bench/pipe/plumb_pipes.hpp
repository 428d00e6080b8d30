// SPDX-License-Identifier: Apache-2.0
//
// What plumb's programs of the suite share: the pipes.
#pragma once

#include "pipe.h"

#include <plumb/handle/pipe_handle.hpp>

#include <cstdio>
#include <vector>

class plumb_pipes {
public:
    explicit plumb_pipes(pipe_options const& options) : meter(pipe_meter_of(&options)) {
        if (*options.multiplexer != '\0') {
            setenv("PLUMB_MULTIPLEXER", options.multiplexer, 1);
        }
        std::vector<int> writers;
        for (int i = 0; i < options.pipes; ++i) {
            auto made = plumb::pipe_handle::anonymous_pipe();
            if (!made) {
                fail(made.error());
            }
            readers.push_back(std::move(made->reader));
            writers.push_back(static_cast<int>(made->writer.release().value()));
        }
        pipe_begin(&writer_, writers.data(), options.pipes);
    }
    plumb_pipes(plumb_pipes const&) = delete;
    plumb_pipes& operator=(plumb_pipes const&) = delete;
    ~plumb_pipes() {
        pipe_report(&meter);
        readers.clear();
        pipe_end(&writer_);
    }

    [[noreturn]] static void fail(std::error_code error) {
        std::fprintf(stderr, "read: %s\n", error.message().c_str());
        std::exit(1);
    }

    std::vector<plumb::pipe_handle> readers;
    pipe_meter meter;

private:
    pipe_writer writer_;
};
