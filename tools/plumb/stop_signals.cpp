// SPDX-License-Identifier: Apache-2.0
#include "stop_signals.hpp"

#include <signal.h>

namespace {

void (*call)(void*) noexcept = nullptr;
void* called_with = nullptr;
sig_atomic_t volatile came = 0;

sigset_t both() noexcept {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

void handle_both(void (*handler)(int)) noexcept {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_mask = both();
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

void on_first_signal(int number) noexcept {
    came = number;
    handle_both(SIG_DFL);
    call(called_with);
}

}  // namespace

void stop_signals::deliver_to(void (*stop)(void* what) noexcept, void* what) noexcept {
    call = stop;
    called_with = what;
    handle_both(&on_first_signal);
    sigset_t const set = both();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int stop_signals::number() const noexcept { return came; }

void stop_signals::block() noexcept {
    sigset_t const set = both();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}
