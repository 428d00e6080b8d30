// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/range_lock.hpp>

#include "handle/outcome.hpp"

namespace plumb {

result<void> range_lock::unlock() noexcept {
    if (!is_locked()) {
        return {};
    }
    return to_result(platform::os().lock_range(std::exchange(native_, no_native_handle),
                                               platform::range_locking::unlock, offset_, bytes_,
                                               false));
}

}  // namespace plumb
