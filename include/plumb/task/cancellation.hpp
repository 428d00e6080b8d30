// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace plumb {

/// Whether an exception says that something was stopped: a `std::system_error` with `operation_canceled`. False for null.
[[nodiscard]] bool is_cancellation(std::exception_ptr const& e) noexcept;

}  // namespace plumb
