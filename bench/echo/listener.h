// SPDX-License-Identifier: Apache-2.0
//
// What the servers on bare system calls share: the listening socket and SIGTERM as a descriptor.
#pragma once

#include "echo.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/// Listens on 127.0.0.1 and returns the descriptor; `*port` becomes the port that was had.
/// Accepted sockets inherit TCP_NODELAY from it.
static inline int echo_listen(uint16_t* port, int type_flags) {
    int const one = 1;
    int const listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type_flags, 0);
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_port = htons(*port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        bind(listener, (struct sockaddr*)&address, sizeof address) != 0 ||
        listen(listener, echo_backlog) != 0 ||
        getsockname(listener, (struct sockaddr*)&address, &size) != 0) {
        echo_fail("cannot listen", errno);
    }
    *port = ntohs(address.sin_port);
    return listener;
}

/// A descriptor that becomes readable on SIGTERM and SIGINT, which no longer end the process.
static inline int echo_stop_signal(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    int const descriptor = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor < 0) {
        echo_fail("signalfd", errno);
    }
    return descriptor;
}
