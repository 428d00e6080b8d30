// SPDX-License-Identifier: Apache-2.0
//
// What the programs of the suite share: options, the places that are read, and the measuring.
//
//   file --path FILE [--reads N] [--in-flight 1] [--direct] [--multiplexer epoll|io_uring]
//   file --path FILE --copy TO [--multiplexer epoll|io_uring]
//
// Reads 4 KiB at a time at random places; what is not direct is read once from end to end before. Prints one line of
// JSON: ns a read, the first tenth of which warm up; or ns a copy, with the opening and the closing of both files.
// Exit: 0; 1 when anything failed; 2 for wrong usage.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { file_block = 4096, file_most_in_flight = 256, file_chunk = 1 << 20 };

struct file_options {
    const char* path;
    const char* copy;
    const char* multiplexer;
    uint64_t reads;
    int in_flight;
    int direct;
};

static inline void file_fail(const char* what) {
    perror(what);
    exit(1);
}

static inline struct file_options file_parse_options(int argc, char** argv) {
    struct file_options o = {NULL, NULL, "", 1000000, 1, 0};
    for (int i = 1; i < argc; ++i) {
        const char* value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--direct") == 0) {
            o.direct = 1;
            continue;
        }
        ++i;
        if (value != NULL && strcmp(argv[i - 1], "--path") == 0) {
            o.path = value;
        } else if (value != NULL && strcmp(argv[i - 1], "--copy") == 0) {
            o.copy = value;
        } else if (value != NULL && strcmp(argv[i - 1], "--reads") == 0) {
            o.reads = strtoull(value, NULL, 10);
        } else if (value != NULL && strcmp(argv[i - 1], "--in-flight") == 0) {
            o.in_flight = atoi(value);
        } else if (value != NULL && strcmp(argv[i - 1], "--multiplexer") == 0) {
            o.multiplexer = value;
        } else {
            o.path = NULL;
            break;
        }
    }
    if (o.path == NULL || o.reads == 0 || o.in_flight < 1 || o.in_flight > file_most_in_flight) {
        fprintf(stderr,
                "usage: file --path FILE [--reads N] [--in-flight 1..%d] [--direct] [--copy TO]\n"
                "            [--multiplexer epoll|io_uring]\n",
                file_most_in_flight);
        exit(2);
    }
    return o;
}

static inline uint64_t file_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void* file_memory(size_t size) {
    void* memory = aligned_alloc(file_block, size);
    if (memory == NULL) {
        file_fail("aligned_alloc");
    }
    memset(memory, 0, size);  // so that its pages are there
    return memory;
}

// Places in a file, the same in every program.
struct file_places {
    uint64_t blocks;
    uint64_t state;
};

// Also brings the file into memory, where it is to be read from there.
static inline struct file_places file_places_of(const struct file_options* o) {
    int file = open(o->path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0 || about.st_size < file_block) {
        file_fail(o->path);
    }
    if (!o->direct) {
        char* memory = (char*)file_memory(file_chunk);
        while (read(file, memory, file_chunk) > 0) {
        }
        free(memory);
    }
    close(file);
    return (struct file_places){(uint64_t)about.st_size / file_block, 88172645463325252u};
}

static inline uint64_t file_next_place(struct file_places* p) {
    p->state ^= p->state << 13;
    p->state ^= p->state >> 7;
    p->state ^= p->state << 17;
    return p->state % p->blocks * file_block;
}

// Called after each read. The first tenth warms up.
struct file_meter {
    uint64_t reads;
    uint64_t warm;
    uint64_t done;
    uint64_t began;
    uint64_t ended;
};

static inline struct file_meter file_meter_of(const struct file_options* o) {
    return (struct file_meter){o->reads, o->reads / 10, 0, file_now(), 0};
}

// @return whether there is another read to wait for
static inline int file_count(struct file_meter* m) {
    ++m->done;
    if (m->done == m->warm) {
        m->began = file_now();
    }
    if (m->done == m->reads) {
        m->ended = file_now();
    }
    return m->done < m->reads;
}

static inline void file_report(const struct file_meter* m) {
    printf("{\"ns_per_read\": %.2f}\n",
           (double)(m->ended - m->began) / (double)(m->reads - m->warm));
}

static inline void file_report_copy(uint64_t began) {
    printf("{\"ns\": %llu}\n", (unsigned long long)(file_now() - began));
}
