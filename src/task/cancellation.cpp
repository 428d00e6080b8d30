// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/cancellation.hpp>

#include <system_error>

namespace plumb {

bool is_cancellation(std::exception_ptr const& e) noexcept {
    if (e == nullptr) {
        return false;
    }
    try {
        std::rethrow_exception(e);
    } catch (std::system_error const& error) {
        return error.code() == std::errc::operation_canceled;
    } catch (...) {
        return false;
    }
}

}  // namespace plumb
