// SPDX-License-Identifier: Apache-2.0
//
// The command line that every echo server of this suite has, for those written in C or C++.
//
//   echo [--port N] [--max-requests N]
//
// `--port 0`, the default, lets the system choose. After `--max-requests` messages echoed (0, the
// default: never) and on SIGTERM the server exits with 0. It prints two lines to stdout:
// `listening <port>` when it accepts, and at the end `{"requests":N,"turns":N}`, where turns are
// the returns of the loop's wait, left out where the library does not tell.
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { echo_backlog = 4096, echo_exit_usage = 2 };

struct echo_options {
    uint16_t port;
    uint64_t max_requests;    // UINT64_MAX: never
    char const* multiplexer;  // what `--multiplexer` said; refused where this starts as NULL
};

static inline uint64_t echo_parse_number(char const* option, char const* text, uint64_t most) {
    char* end = NULL;
    errno = 0;
    unsigned long long const value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > most) {
        fprintf(stderr, "echo: %s: '%s' is not a number up to %llu\n", option, text,
                (unsigned long long)most);
        exit(echo_exit_usage);
    }
    return value;
}

static inline void echo_parse_options(int argc, char** argv, struct echo_options* options) {
    for (int i = 1; i < argc; i += 2) {
        char const* option = argv[i];
        char const* value = argv[i + 1];  // argv ends with a null pointer
        if (value != NULL && strcmp(option, "--port") == 0) {
            options->port = (uint16_t)echo_parse_number(option, value, UINT16_MAX);
        } else if (value != NULL && strcmp(option, "--max-requests") == 0) {
            options->max_requests = echo_parse_number(option, value, UINT64_MAX);
        } else if (value != NULL && options->multiplexer != NULL &&
                   strcmp(option, "--multiplexer") == 0) {
            options->multiplexer = value;
        } else {
            fprintf(stderr, "usage: echo [--port N] [--max-requests N]%s\n",
                    options->multiplexer != NULL ? " [--multiplexer NAME]" : "");
            exit(echo_exit_usage);
        }
    }
    // A server counts up to its limit, so "never" is a number that it does not reach.
    if (options->max_requests == 0) {
        options->max_requests = UINT64_MAX;
    }
}

static inline void echo_print_listening(uint16_t port) {
    printf("listening %u\n", port);
    fflush(stdout);
}

static inline void echo_print_result(uint64_t requests, uint64_t const* turns) {
    printf("{\"requests\":%llu", (unsigned long long)requests);
    if (turns != NULL) {
        printf(",\"turns\":%llu", (unsigned long long)*turns);
    }
    printf("}\n");
    fflush(stdout);
}

/// Says on stderr what failed and ends the server.
static inline void echo_fail(char const* what, int error) {
    fprintf(stderr, "echo: %s: %s\n", what, strerror(error));
    exit(1);
}
