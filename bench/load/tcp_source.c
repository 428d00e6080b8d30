// SPDX-License-Identifier: Apache-2.0
//
// Sends bytes to the first that connects, then ends.
//
//   tcp_source [--bytes 1000000000] [--block 65536]
//
// Prints `listening PORT` when it accepts. Exit: 0; 1 when anything failed; 2 for wrong usage.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { most_block = 65536 };

static void fail(char const* what) {
    perror(what);
    exit(1);
}

int main(int argc, char** argv) {
    uint64_t bytes = 1000000000;
    size_t block = most_block;
    int known = argc % 2 == 1;
    for (int i = 1; known && i < argc; i += 2) {
        if (strcmp(argv[i], "--bytes") == 0) {
            bytes = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--block") == 0) {
            block = strtoul(argv[i + 1], NULL, 10);
        } else {
            known = 0;
        }
    }
    if (!known || block == 0 || block > most_block) {
        fprintf(stderr, "usage: tcp_source [--bytes N] [--block 1..%d]\n", most_block);
        return 2;
    }

    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int const listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr*)&address, size) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr*)&address, &size) != 0) {
        fail("listen");
    }
    printf("listening %u\n", ntohs(address.sin_port));
    fflush(stdout);
    int const peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (peer < 0) {
        fail("accept");
    }
    static char data[most_block];
    while (bytes != 0) {
        ssize_t const sent = send(peer, data, bytes < block ? bytes : block, MSG_NOSIGNAL);
        if (sent <= 0) {
            fail("send");
        }
        bytes -= (uint64_t)sent;
    }
    close(peer);
    return 0;
}
