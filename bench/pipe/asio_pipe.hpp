// SPDX-License-Identifier: Apache-2.0
//
// What asio's programs of the suite share: one pipe. The io_context's own executor instead of a type-erased one.
#pragma once

#include "pipe.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

namespace asio = boost::asio;
using boost::system::error_code;
using executor = asio::io_context::executor_type;

class asio_pipe {
public:
    explicit asio_pipe(pipe_options const& options)
        : context(1), reader(context), meter(pipe_meter_of(&options)) {
        int ends[2];
        if (options.pipes != 1 || *options.multiplexer != '\0' || pipe2(ends, O_CLOEXEC) != 0) {
            std::fprintf(stderr, "pipe: one pipe, and no choice of a multiplexer\n");
            std::exit(2);
        }
        reader.assign(ends[0]);
        reader.non_blocking(true);
        pipe_begin(&writer_, &ends[1], 1);
    }
    asio_pipe(asio_pipe const&) = delete;
    asio_pipe& operator=(asio_pipe const&) = delete;
    ~asio_pipe() {
        pipe_report(&meter);
        reader.close();
        pipe_end(&writer_);
    }

    /// @return whether there is another read to do
    bool count(error_code error) {
        if (error) {
            std::fprintf(stderr, "read: %s\n", error.message().c_str());
            std::exit(1);
        }
        return pipe_count(&meter) != 0;
    }

    asio::io_context context;
    asio::posix::basic_stream_descriptor<executor> reader;
    char byte = 0;

private:
    pipe_meter meter;
    pipe_writer writer_;
};
