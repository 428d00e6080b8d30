// SPDX-License-Identifier: Apache-2.0
// How much was read is not what was asked for.
// expect: ignoring return value of
// expect: ignoring returned value of
#pragma GCC diagnostic error "-Wunused-result"
#include <plumb/base/io_result.hpp>

plumb::io_result<plumb::buffers> read(plumb::buffers into) { return into; }

int main() {
    char data[4];
    read(data);
}
