// SPDX-License-Identifier: Apache-2.0
//
// What the programs of the suite share: the command line and the report.
//
//   tcp_reader --port N [--bytes 1000000000] [--block 65536]
//
// Connects to the port of this machine, and reads that many bytes, up to a block at a time. Prints one line of JSON: MB (a
// million bytes) a second since it was connected, and the number of reads. Exit: 0; 1 when anything failed; 2 for wrong
// usage.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { reader_most_block = 65536 };

struct reader_options {
    uint16_t port;
    uint64_t bytes;
    size_t block;
};

static inline struct reader_options reader_parse_options(int argc, char** argv) {
    struct reader_options o = {0, 1000000000, reader_most_block};
    int known = argc % 2 == 1;
    for (int i = 1; known && i < argc; i += 2) {
        char const* value = argv[i + 1];
        if (strcmp(argv[i], "--port") == 0) {
            o.port = (uint16_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--bytes") == 0) {
            o.bytes = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--block") == 0) {
            o.block = strtoul(value, NULL, 10);
        } else {
            known = 0;
        }
    }
    if (!known || o.port == 0 || o.block == 0 || o.block > reader_most_block) {
        fprintf(stderr, "usage: tcp_reader --port N [--bytes N] [--block 1..%d]\n",
                reader_most_block);
        exit(2);
    }
    return o;
}

static inline uint64_t reader_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// What is still to be read.
struct reader_meter {
    uint64_t left;
    uint64_t bytes;
    uint64_t reads;
    uint64_t began;
};

// When it is connected.
static inline struct reader_meter reader_begin(struct reader_options const* o) {
    struct reader_meter m = {o->bytes, o->bytes, 0, reader_now()};
    return m;
}

// Counts what a read gave; 0 is the end. @return whether there is more to read
static inline int reader_count(struct reader_meter* m, size_t bytes) {
    ++m->reads;
    m->left -= bytes < m->left ? bytes : m->left;
    return bytes != 0 && m->left != 0;
}

// @return the exit status
static inline int reader_report(struct reader_meter const* m) {
    double const seconds = (double)(reader_now() - m->began) / 1e9;
    if (m->left != 0) {
        fprintf(stderr, "tcp_reader: %llu bytes did not come\n", (unsigned long long)m->left);
        return 1;
    }
    printf("{\"mb_per_second\": %.1f, \"reads\": %llu}\n", (double)m->bytes / 1e6 / seconds,
           (unsigned long long)m->reads);
    return 0;
}

static inline void reader_fail(char const* what, char const* why) {
    fprintf(stderr, "tcp_reader: %s: %s\n", what, why);
    exit(1);
}
