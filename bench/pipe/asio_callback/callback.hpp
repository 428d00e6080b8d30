// SPDX-License-Identifier: Apache-2.0
//
// asio's async_read_some, whose callback starts the next.
#pragma once

#include "../asio_pipe.hpp"

#include <boost/asio/buffer.hpp>

inline void read_next(asio_pipe& pipe) {
    pipe.reader.async_read_some(asio::buffer(&pipe.byte, 1),
                                [&pipe](error_code error, std::size_t) {
                                    if (pipe.count(error)) {
                                        read_next(pipe);
                                    }
                                });
}

inline int read_all(int argc, char** argv) {
    asio_pipe pipe(pipe_parse_options(argc, argv));
    read_next(pipe);
    pipe.context.run();
    return 0;
}
