// SPDX-License-Identifier: Apache-2.0
//
// The echo server on bare epoll: what the kernel's interface costs when nothing is in between.
// Each socket is registered once, edge-triggered, so that a message costs one `recv` and one `send`,
// which the kernel does with less than `read` and `write`.
// All connections share one read buffer; one that the peer does not drain gets a copy of its own.
#define _GNU_SOURCE
#include "../listener.h"

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#define cold __attribute__((cold, noinline))

enum { buffer_bytes = 16384, events_a_turn = 512, most_descriptors = 1 << 20 };

// What the kernel did not take yet of the last read; nothing is read before it is gone.
struct unsent {
    char* data;  // NULL: nothing
    uint32_t begin;
    uint32_t end;
};

static struct unsent* unsent_by_descriptor;
static char buffer[buffer_bytes];
static int poller;
static int listener;
static bool accept_paused;  // the descriptor table was full
static uint64_t requests;

cold static void accept_all(void) {
    for (;;) {
        int const peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (peer < 0) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            accept_paused = errno != EAGAIN;
            return;
        }
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.fd = peer};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, peer, &event) != 0) {
            close(peer);
        }
    }
}

cold static void end_connection(int peer) {
    free(unsent_by_descriptor[peer].data);
    unsent_by_descriptor[peer].data = NULL;
    close(peer);
    if (accept_paused) {
        accept_all();
    }
}

// Keeps what the socket did not take. False: out of memory.
cold static bool keep_unsent(int peer, char const* data, size_t size) {
    char* copy = malloc(size);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, data, size);
    unsent_by_descriptor[peer] = (struct unsent){.data = copy, .begin = 0, .end = (uint32_t)size};
    return true;
}

// True when all is written; false with errno when not, EAGAIN among them.
cold static bool write_unsent(int peer) {
    struct unsent* unsent = &unsent_by_descriptor[peer];
    while (unsent->begin != unsent->end) {
        ssize_t const written =
            send(peer, unsent->data + unsent->begin, unsent->end - unsent->begin, MSG_NOSIGNAL);
        if (written >= 0) {
            unsent->begin += (uint32_t)written;
        } else if (errno != EINTR) {
            return false;
        }
    }
    free(unsent->data);
    unsent->data = NULL;
    ++requests;
    return true;
}

static void serve(int peer, uint32_t events) {
    if (unsent_by_descriptor[peer].data != NULL && !write_unsent(peer)) {
        if (errno != EAGAIN) {
            end_connection(peer);
        }
        return;
    }
    for (;;) {
        ssize_t const size = recv(peer, buffer, sizeof buffer, 0);
        if (size <= 0) {
            if (size < 0 && errno == EINTR) {
                continue;
            }
            if (size == 0 || errno != EAGAIN) {
                end_connection(peer);
            }
            return;
        }
        ssize_t const written = send(peer, buffer, (size_t)size, MSG_NOSIGNAL);
        if (written == size) {
            ++requests;
        } else {
            ssize_t const sent = written > 0 ? written : 0;
            if ((written < 0 && errno != EAGAIN && errno != EINTR) ||
                !keep_unsent(peer, buffer + sent, (size_t)(size - sent))) {
                end_connection(peer);
                return;
            }
            if (!write_unsent(peer)) {
                if (errno != EAGAIN) {
                    end_connection(peer);
                }
                return;
            }
        }
        // A short read emptied the socket; the end of the stream may have come as the same edge.
        if (size < (ssize_t)sizeof buffer && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) {
            return;
        }
    }
}

int main(int argc, char** argv) {
    struct echo_options options = {0};
    echo_parse_options(argc, argv, &options);

    struct rlimit descriptors;
    getrlimit(RLIMIT_NOFILE, &descriptors);
    if (descriptors.rlim_cur > most_descriptors) {
        descriptors.rlim_cur = most_descriptors;  // the table below has a place for each
        setrlimit(RLIMIT_NOFILE, &descriptors);
    }
    unsent_by_descriptor = calloc(descriptors.rlim_cur, sizeof *unsent_by_descriptor);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (unsent_by_descriptor == NULL || poller < 0) {
        echo_fail("cannot start", errno);
    }
    listener = echo_listen(&options.port, SOCK_NONBLOCK);
    int const stop = echo_stop_signal();
    struct epoll_event accepting = {.events = EPOLLIN | EPOLLET, .data.fd = listener};
    struct epoll_event stopping = {.events = EPOLLIN, .data.fd = stop};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, listener, &accepting) != 0 ||
        epoll_ctl(poller, EPOLL_CTL_ADD, stop, &stopping) != 0) {
        echo_fail("epoll_ctl", errno);
    }
    echo_print_listening(options.port);

    static struct epoll_event events[events_a_turn];
    uint64_t turns = 0;
    bool stopped = false;
    while (!stopped && requests < options.max_requests) {
        int const ready = epoll_wait(poller, events, events_a_turn, -1);
        if (ready < 0 && errno != EINTR) {
            echo_fail("epoll_wait", errno);
        }
        ++turns;
        for (int i = 0; i < ready; ++i) {
            int const descriptor = events[i].data.fd;
            if (descriptor == listener) {
                accept_all();
            } else if (descriptor == stop) {
                stopped = true;
            } else {
                serve(descriptor, events[i].events);
            }
        }
    }
    echo_print_result(requests, &turns);
    return 0;
}
