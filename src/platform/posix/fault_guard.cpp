// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <cerrno>
#include <csetjmp>
#include <cstddef>

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

// A guard is on the stack of the call that it is for, and known to its thread by a list, the innermost first. A fault in
// the range of one leaves the calls down to that, and none is known any more that was left.
namespace plumb::platform {
namespace {

struct guard {
    std::byte const* begin;
    std::byte const* end;
    guard* outer;
    sigjmp_buf left;
};

constinit thread_local guard* innermost = nullptr;

// Who was told of the signal before; written once, before our handler can be called.
struct sigaction earlier;

void hand_on(int number, siginfo_t* info, void* context) noexcept {
    if ((earlier.sa_flags & SA_SIGINFO) != 0) {
        earlier.sa_sigaction(number, info, context);
        return;
    }
    bool const sent = info->si_code <= 0;
    if (earlier.sa_handler == SIG_IGN && sent) {
        return;
    }
    if (earlier.sa_handler != SIG_IGN && earlier.sa_handler != SIG_DFL) {
        earlier.sa_handler(number);
        return;
    }
    // The system's own way ends the process: a fault comes again when this returns.
    ::sigaction(number, &earlier, nullptr);
    if (sent) {
        ::raise(number);
    }
}

void on_fault(int number, siginfo_t* info, void* context) noexcept {
    if (info->si_code > 0) {
        auto const* const at = static_cast<std::byte const*>(info->si_addr);
        for (guard* g = innermost; g != nullptr; g = g->outer) {
            if (at >= g->begin && at < g->end) {
                innermost = g->outer;
                // What was blocked for the handler, by us or by who calls ours, is so no longer.
                ::pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask,
                                  nullptr);
                ::siglongjmp(g->left, 1);
            }
        }
    }
    hand_on(number, info, context);
}

bool handle_faults() noexcept {
    struct sigaction ours{};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return ::sigaction(SIGBUS, nullptr, &earlier) == 0 && ::sigaction(SIGBUS, &ours, nullptr) == 0;
}

}  // namespace

outcome guard_map(void const* begin, std::size_t bytes, void (*call)(void*) noexcept,
                  void* object) noexcept {
    [[maybe_unused]] static bool const handled = handle_faults();
    auto const* const first = static_cast<std::byte const*>(begin);
    guard g;
    g.begin = first;
    g.end = first + bytes;
    g.outer = innermost;
    if (sigsetjmp(g.left, 0) != 0) {
        return -EFAULT;
    }
    innermost = &g;
    call(object);
    innermost = g.outer;
    return 0;
}

}  // namespace plumb::platform
