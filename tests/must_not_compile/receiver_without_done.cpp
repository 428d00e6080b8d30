// SPDX-License-Identifier: Apache-2.0
// A receiver must learn when the operation's state may be reused.
// expect: constraint
// expect: no matching function for call to 'connect'
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

struct receiver {
    void set_value(plumb::result<void>&&) noexcept {}
};

auto f(plumb::io_multiplexer& m) { return plumb::connect(plumb::async_wait(m, {}), receiver()); }
