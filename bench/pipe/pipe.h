// SPDX-License-Identifier: Apache-2.0
//
// What the programs of the suite share: pipes that a writer keeps full, so that each read of one byte finds it there,
// and the measuring.
//
//   pipe [--reads 2000000] [--pipes 1] [--percentiles] [--multiplexer epoll|io_uring]
//
// Reads go round the pipes. Prints one line of JSON: ns a read; with --percentiles what single reads took, which
// costs two readings of the clock each. Exit: 0; 1 when anything failed; 2 for wrong usage.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { pipe_most = 64, pipe_histogram = 1 << 16, pipe_step_ns = 16 };

struct pipe_options {
    uint64_t reads;
    int pipes;
    int percentiles;
    const char* multiplexer;
};

static inline void pipe_fail(const char* what) {
    perror(what);
    exit(1);
}

static inline struct pipe_options pipe_parse_options(int argc, char** argv) {
    struct pipe_options o = {2000000, 1, 0, ""};
    for (int i = 1; i < argc; ++i) {
        const char* value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--percentiles") == 0) {
            o.percentiles = 1;
            continue;
        }
        ++i;
        if (value != NULL && strcmp(argv[i - 1], "--reads") == 0) {
            o.reads = strtoull(value, NULL, 10);
        } else if (value != NULL && strcmp(argv[i - 1], "--pipes") == 0) {
            o.pipes = atoi(value);
        } else if (value != NULL && strcmp(argv[i - 1], "--multiplexer") == 0) {
            o.multiplexer = value;
        } else {
            o.pipes = 0;
            break;
        }
    }
    if (o.pipes < 1 || o.pipes > pipe_most || o.reads == 0) {
        fprintf(stderr,
                "usage: pipe [--reads N] [--pipes 1..%d] [--percentiles]\n"
                "            [--multiplexer epoll|io_uring]\n",
                pipe_most);
        exit(2);
    }
    return o;
}

static inline void pipe_pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// The writing ends, none of which ever blocks: one thread fills what has room.
struct pipe_writer {
    int ends[pipe_most];
    int count;
    pthread_t thread;
};

static inline void* pipe_write_all(void* argument) {
    struct pipe_writer* w = (struct pipe_writer*)argument;
    static char bytes[65536];
    struct pollfd waits[pipe_most];
    pipe_pin(1);
    for (int i = 0; i < w->count; ++i) {
        waits[i].fd = w->ends[i];
        waits[i].events = POLLOUT;
    }
    while (poll(waits, (nfds_t)w->count, -1) > 0) {
        for (int i = 0; i < w->count; ++i) {
            if ((waits[i].revents & POLLERR) != 0) {
                return NULL;  // the readers are gone
            }
            if ((waits[i].revents & POLLOUT) != 0) {
                (void)!write(w->ends[i], bytes, sizeof(bytes));
            }
        }
    }
    return NULL;
}

// Takes the writing ends over, and begins to write. The caller closes the reading ends, then calls `pipe_end`.
static inline void pipe_begin(struct pipe_writer* w, const int* ends, int count) {
    signal(SIGPIPE, SIG_IGN);
    w->count = count;
    for (int i = 0; i < count; ++i) {
        w->ends[i] = ends[i];
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
        static char bytes[65536];
        (void)!write(ends[i], bytes, sizeof(bytes));
    }
    if (pthread_create(&w->thread, NULL, pipe_write_all, w) != 0) {
        pipe_fail("pthread_create");
    }
    pipe_pin(0);
}

static inline void pipe_end(struct pipe_writer* w) {
    pthread_join(w->thread, NULL);
    for (int i = 0; i < w->count; ++i) {
        close(w->ends[i]);
    }
}

static inline uint64_t pipe_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Called after each read. The first tenth warms up.
struct pipe_meter {
    uint64_t reads;
    uint64_t warm;
    uint64_t done;
    uint64_t began;
    uint64_t ended;
    uint64_t last;
    uint64_t worst;
    uint32_t* histogram;
};

static inline struct pipe_meter pipe_meter_of(const struct pipe_options* o) {
    struct pipe_meter m = {o->reads, o->reads / 10, 0, pipe_now(), 0, 0, 0, NULL};
    if (o->percentiles) {
        m.histogram = (uint32_t*)calloc(pipe_histogram, sizeof(uint32_t));
        m.last = m.began;
    }
    return m;
}

// @return whether there is another read to do
static inline int pipe_count(struct pipe_meter* m) {
    ++m->done;
    if (m->histogram != NULL) {
        uint64_t now = pipe_now();
        uint64_t took = now - m->last;
        if (m->done > m->warm) {
            uint64_t place = took / pipe_step_ns;
            ++m->histogram[place < pipe_histogram ? place : pipe_histogram - 1];
            m->worst = took > m->worst ? took : m->worst;
        }
        m->last = pipe_now();
    }
    if (m->done == m->warm) {
        m->began = pipe_now();
    }
    if (m->done == m->reads) {
        m->ended = pipe_now();
        return 0;
    }
    return 1;
}

static inline double pipe_percentile(const struct pipe_meter* m, double part) {
    uint64_t wanted = (uint64_t)((double)(m->reads - m->warm) * part);
    uint64_t seen = 0;
    for (int i = 0; i < pipe_histogram; ++i) {
        seen += m->histogram[i];
        if (seen > wanted) {
            return ((double)i + 0.5) * (double)pipe_step_ns;
        }
    }
    return (double)m->worst;
}

static inline void pipe_report(struct pipe_meter* m) {
    double ns = (double)(m->ended - m->began) / (double)(m->reads - m->warm);
    printf("{\"ns_per_read\": %.2f", ns);
    if (m->histogram != NULL) {
        static const struct {
            const char* name;
            double part;
        } told[] = {
            {"p50_ns", 0.5}, {"p99_ns", 0.99}, {"p9999_ns", 0.9999}, {"p999999_ns", 0.999999}};
        for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); ++i) {
            printf(", \"%s\": %.0f", told[i].name, pipe_percentile(m, told[i].part));
        }
        printf(", \"worst_ns\": %llu", (unsigned long long)m->worst);
        free(m->histogram);
    }
    printf("}\n");
}
