// SPDX-License-Identifier: Apache-2.0
// A handle owns its native handle: it moves, and is never copied.
// expect: deleted
#include <plumb/handle/stream_socket_handle.hpp>

void f(plumb::stream_socket_handle const& socket) { auto copy = socket; }
