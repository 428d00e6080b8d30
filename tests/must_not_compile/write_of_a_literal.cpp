// SPDX-License-Identifier: Apache-2.0
// A string literal has a null at its end, which would be sent: std::string_view leaves it out.
// expect: could not convert
// expect: cannot convert
// expect: no matching function for call to
#include <plumb/base/io_request.hpp>

void write(plumb::io_request<plumb::const_buffers>);

int main() { write("hello"); }
