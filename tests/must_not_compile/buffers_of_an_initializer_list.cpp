// SPDX-License-Identifier: Apache-2.0
// The list's array would be gone before the i/o: it has to have a name.
// expect: no matching function for call to
// expect: no matching conversion for functional-style cast
#include <plumb/base/buffers.hpp>

#include <initializer_list>

int main() {
    char data[4];
    plumb::buffer const whole(data, 4);
    return static_cast<int>(plumb::buffers(std::initializer_list<plumb::buffer>{whole}).size());
}
