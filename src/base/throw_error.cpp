// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/throw_error.hpp>

namespace plumb {

void throw_error(std::error_code code, char const* what) {
    if (what != nullptr) {
        throw std::system_error(code, what);
    }
    throw std::system_error(code);
}

}  // namespace plumb
