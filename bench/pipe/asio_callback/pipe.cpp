// SPDX-License-Identifier: Apache-2.0
//
// asio with callbacks, as it is used by default.
#include "callback.hpp"

int main(int argc, char** argv) { return read_all(argc, argv); }
