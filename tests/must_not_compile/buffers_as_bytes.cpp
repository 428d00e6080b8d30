// SPDX-License-Identifier: Apache-2.0
// An array of buffers is a list, not bytes to be filled.
// expect: use of deleted function
// expect: call to deleted constructor
#include <plumb/base/buffer.hpp>

int main() {
    plumb::buffer parts[2];
    return static_cast<int>(plumb::buffer(parts, 2).size());
}
