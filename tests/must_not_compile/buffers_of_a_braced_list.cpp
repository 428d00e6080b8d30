// SPDX-License-Identifier: Apache-2.0
// The list's array would be gone before the i/o: it has to have a name.
// expect: no matching function for call to
// expect: no matching constructor for initialization of
// expect: could not convert
#include <plumb/base/buffers.hpp>

void read(plumb::buffers);

int main() {
    char data[4];
    plumb::buffer const first(data, 2);
    plumb::buffer const second(data + 2, 2);
    read({first, second});
}
