// SPDX-License-Identifier: Apache-2.0
//
// asio with callbacks, compiled for one thread.
#define BOOST_ASIO_DISABLE_THREADS
#include "../asio_callback/callback.hpp"

int main(int argc, char** argv) { return read_all(argc, argv); }
