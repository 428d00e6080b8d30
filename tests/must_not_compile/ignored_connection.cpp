// SPDX-License-Identifier: Apache-2.0
// A connection that nobody keeps is gone before it is started.
// expect: nodiscard
// expect: ignoring
#pragma GCC diagnostic error "-Wunused-result"
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

struct receiver {
    void set_value(plumb::result<void>&&) noexcept {}
    void set_done() noexcept {}
};

void f(plumb::io_multiplexer& m) { plumb::connect(plumb::async_wait(m, {}), receiver()); }
