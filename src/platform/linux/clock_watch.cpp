// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <cerrno>
#include <limits>

#include <sys/timerfd.h>
#include <unistd.h>

namespace plumb::platform {

// A timer that never ends, and that setting the clock cancels: the kernel then wakes who polls it, also when it was
// not read since the last time.
outcome open_clock_watch() noexcept {
    int const watch = ::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (watch < 0) {
        return -errno;
    }
    itimerspec const never{{}, {std::numeric_limits<std::int32_t>::max(), 0}};
    if (::timerfd_settime(watch, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr) <
        0) {
        int const error = errno;
        ::close(watch);
        return -error;
    }
    return watch;
}

}  // namespace plumb::platform
