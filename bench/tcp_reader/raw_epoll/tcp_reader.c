// SPDX-License-Identifier: Apache-2.0
//
// recv(2) until nothing is there, then epoll_wait(2), edge-triggered.
#define _GNU_SOURCE
#include "../tcp_reader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char room[reader_most_block];

int main(int argc, char** argv) {
    struct reader_options const o = reader_parse_options(argc, argv);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(o.port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int const peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int const ready = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    if (peer < 0 || ready < 0 || connect(peer, (struct sockaddr*)&address, sizeof(address)) != 0 ||
        epoll_ctl(ready, EPOLL_CTL_ADD, peer, &event) != 0) {
        reader_fail("connect", strerror(errno));
    }
    struct reader_meter m = reader_begin(&o);
    for (;;) {
        ssize_t const got = recv(peer, room, o.block, MSG_DONTWAIT);
        if (got >= 0) {
            if (!reader_count(&m, (size_t)got)) {
                return reader_report(&m);
            }
        } else if (errno != EAGAIN) {
            reader_fail("read", strerror(errno));
        } else {
            (void)epoll_wait(ready, &event, 1, -1);
        }
    }
}
