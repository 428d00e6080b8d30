// SPDX-License-Identifier: Apache-2.0
//
// What asio's programs share: compiled for one thread, with the io_context's own executor instead of a type-erased one.
#pragma once

#define BOOST_ASIO_DISABLE_THREADS
#include "tcp_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using executor = asio::io_context::executor_type;
using tcp_socket = asio::basic_stream_socket<tcp, executor>;

inline tcp::endpoint endpoint_of(reader_options const& o) {
    return {asio::ip::address_v4::loopback(), o.port};
}
