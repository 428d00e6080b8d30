// SPDX-License-Identifier: Apache-2.0
// An operation belongs to the multiplexer once it has started: nothing may copy it.
// expect: deleted
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

struct receiver {
    void set_value(plumb::result<void>&&) noexcept {}
    void set_done() noexcept {}
};

void f(plumb::io_operation_connection<plumb::async_wait, receiver> const& operation) {
    auto copy = operation;
}
