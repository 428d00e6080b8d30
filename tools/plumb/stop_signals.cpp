// SPDX-License-Identifier: Apache-2.0
#include "stop_signals.hpp"

#include "echo_server.hpp"

#include <signal.h>

namespace {

echo_server* served = nullptr;

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

void on_first_signal(int) noexcept {
    handle_both(SIG_DFL);
    served->request_stop();
}

}  // namespace

void stop_signals::deliver_to(echo_server& server) noexcept {
    served = &server;
    handle_both(&on_first_signal);
    sigset_t const set = both();
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void stop_signals::block() noexcept {
    sigset_t const set = both();
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}
