// SPDX-License-Identifier: Apache-2.0
// The receiver of a timer is told no bytes.
// expect: constraint
// expect: no matching function for call to 'connect'
#include <plumb/base/io_result.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>

struct receiver {
    void set_value(plumb::io_result<plumb::buffers>&&) noexcept {}
    void set_done() noexcept {}
};

auto f(plumb::io_multiplexer& m) { return plumb::connect(plumb::async_wait(m, {}), receiver()); }
