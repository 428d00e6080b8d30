// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/assert.hpp>

#include <cstdio>
#include <exception>

namespace plumb {

void caller_bug(char const* message) noexcept {
    std::fprintf(stderr, "plumb: %s\n", message);
    std::terminate();
}

}  // namespace plumb
