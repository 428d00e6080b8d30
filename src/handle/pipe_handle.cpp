// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/pipe_handle.hpp>

#include "platform/seam.hpp"

namespace plumb {

result<pipe_handle::ends> pipe_handle::anonymous_pipe() noexcept {
    native_handle native[2];
    if (auto const opened = platform::os().open_pipe(native); opened < 0) {
        return platform::error_of(opened);
    }
    return ends{pipe_handle(native[0]), pipe_handle(native[1])};
}

}  // namespace plumb
