// SPDX-License-Identifier: Apache-2.0
//
// What the coroutines share.
#pragma once

#include "tcp_reader.h"

#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

/// @param reader  gives the exit status
inline int run_reader(int argc, char** argv, plumb::task<int> (*reader)(reader_options)) {
    int status = 1;
    plumb::io_context context;
    plumb::async_run(context.get_executor(), reader(reader_parse_options(argc, argv)), {},
                     [&](plumb::task_result<int>& r) { status = r.take(); });
    (void)context.run();
    return status;
}
