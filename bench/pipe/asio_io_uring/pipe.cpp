// SPDX-License-Identifier: Apache-2.0
//
// asio with callbacks on io_uring, compiled for one thread.
#define BOOST_ASIO_DISABLE_THREADS
#define BOOST_ASIO_HAS_IO_URING
#define BOOST_ASIO_DISABLE_EPOLL
#include "../asio_callback/callback.hpp"

int main(int argc, char** argv) { return read_all(argc, argv); }
