// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

// A poller is an epoll instance and an eventfd that wakes it, which needs a state of its own: its handle is the
// address of that.
namespace plumb::platform {
namespace {

struct epoll_poller {
    int epoll;
    int wake = -1;
    int timer = -1;  // where the kernel doesn't wait for nanoseconds, from the first such wait on
};

static_assert(std::uint32_t{readable} == EPOLLIN && std::uint32_t{writable} == EPOLLOUT &&
                  std::uint32_t{divided} == EPOLLPRI && std::uint32_t{failed} == EPOLLERR &&
                  std::uint32_t{disconnected} == EPOLLHUP &&
                  std::uint32_t{read_ended} == EPOLLRDHUP,
              "the readiness of an event is taken over as it is");

epoll_poller& of(native_handle poller) noexcept { return *reinterpret_cast<epoll_poller*>(poller); }

// Reported once, each time that it becomes readable, and never read.
bool end_waits_by(epoll_poller const& p, int descriptor) noexcept {
    epoll_event e{EPOLLIN | EPOLLET, {.u64 = no_key}};
    return descriptor >= 0 && ::epoll_ctl(p.epoll, EPOLL_CTL_ADD, descriptor, &e) == 0;
}

/// @return whether the poller's timer will end the wait
bool set_timer(epoll_poller& p, timespec const& after) noexcept {
    if (p.timer < 0) {
        int const made = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (!end_waits_by(p, made)) {
            ::close(made);
            return false;
        }
        p.timer = made;
    }
    itimerspec const once{{}, after};
    return ::timerfd_settime(p.timer, 0, &once, nullptr) == 0;
}

// Nanoseconds where the kernel can (5.11) and a sandbox lets it, else a timer, else milliseconds rounded up, so that no
// wait ends early and then spins.
int wait(epoll_poller& p, epoll_event* events, int capacity, std::int64_t timeout) noexcept {
    static std::atomic<bool> has_nanoseconds{true};
    if (timeout <= 0) {
        return ::epoll_wait(p.epoll, events, capacity, timeout < 0 ? -1 : 0);
    }
    timespec const t{timeout / 1'000'000'000, timeout % 1'000'000'000};
    if (has_nanoseconds.load(std::memory_order_relaxed)) {
        int const count = ::epoll_pwait2(p.epoll, events, capacity, &t, nullptr);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return count;
        }
        has_nanoseconds.store(false, std::memory_order_relaxed);
    }
    if (set_timer(p, t)) {
        return ::epoll_wait(p.epoll, events, capacity, -1);
    }
    std::int64_t const ms =
        std::min<std::int64_t>(timeout / 1'000'000 + (timeout % 1'000'000 != 0), INT32_MAX);
    return ::epoll_wait(p.epoll, events, capacity, static_cast<int>(ms));
}

}  // namespace

outcome open_poller() noexcept {
    auto* const made = new (std::nothrow) epoll_poller{::epoll_create1(EPOLL_CLOEXEC)};
    if (made == nullptr) {
        return -ENOMEM;
    }
    auto const handle = static_cast<native_handle>(reinterpret_cast<std::intptr_t>(made));
    if (made->epoll < 0 || (made->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
        !end_waits_by(*made, made->wake)) {
        int const error = errno;
        close_poller(handle);
        return -error;
    }
    return handle;
}

void close_poller(native_handle poller) noexcept {
    epoll_poller const& p = of(poller);
    for (int const d : {p.timer, p.wake, p.epoll}) {
        if (d >= 0) {
            ::close(d);
        }
    }
    delete &p;
}

outcome poller_add(native_handle poller, native_handle h, std::uint64_t key) noexcept {
    epoll_event e{EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = key}};
    return ::epoll_ctl(of(poller).epoll, EPOLL_CTL_ADD, static_cast<int>(h), &e) < 0 ? -errno : 0;
}

outcome poller_remove(native_handle poller, native_handle h) noexcept {
    return ::epoll_ctl(of(poller).epoll, EPOLL_CTL_DEL, static_cast<int>(h), nullptr) < 0 ? -errno
                                                                                          : 0;
}

outcome poller_wait(native_handle poller, poll_event* events, std::size_t capacity,
                    std::int64_t timeout) noexcept {
    // Where the kernel's events have the layout of the seam's it writes them in place. Edge-triggered: each wake-up
    // reports once, so the counter need not be read while it is far from full.
    constexpr bool in_place = sizeof(poll_event) == sizeof(epoll_event);
    std::array<epoll_event, in_place ? 1 : 256> native;
    auto* const to = in_place ? reinterpret_cast<epoll_event*>(events) : native.data();
    auto const room = std::min(capacity, in_place ? std::size_t{INT32_MAX} : native.size());
    int const count = wait(of(poller), to, static_cast<int>(room), timeout);
    if (count < 0) {
        return errno == EINTR ? 0 : -errno;
    }
    if constexpr (!in_place) {
        for (int i = 0; i < count; ++i) {
            events[i] = {to[i].data.u64, to[i].events};
        }
    }
    return count;
}

void poller_wake(native_handle poller) noexcept {
    int const error = errno;
    std::uint64_t const one = 1;
    while (::write(of(poller).wake, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    errno = error;
}

}  // namespace plumb::platform
