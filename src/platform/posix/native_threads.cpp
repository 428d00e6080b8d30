// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <pthread.h>
#include <unistd.h>

namespace plumb::platform {

outcome start_thread(thread_start& start) noexcept {
    static_assert(sizeof(pthread_t) <= sizeof(start.native));
    pthread_t thread;
    int const error = ::pthread_create(
        &thread, nullptr,
        [](void* given) -> void* {
            auto& s = *static_cast<thread_start*>(given);
            s.body(s.argument);
            return nullptr;
        },
        &start);
    if (error == 0) {
        start.native = static_cast<std::uintptr_t>(thread);
    }
    return -outcome{error};
}

void join_thread(thread_start& start) noexcept {
    ::pthread_join(static_cast<pthread_t>(start.native), nullptr);
}

int processor_count() noexcept {
    auto const count = ::sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? static_cast<int>(count) : 1;
}

std::int64_t process() noexcept { return ::getpid(); }

}  // namespace plumb::platform
