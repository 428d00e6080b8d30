// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_multiplexer.hpp>

#include <memory>
#include <optional>

/// Makes what was asked for, or the best that works here.
/// Throws `std::system_error` that says what could not be had.
std::unique_ptr<plumb::io_multiplexer>
make_multiplexer(std::optional<plumb::multiplexer_kind> kind);
