// SPDX-License-Identifier: Apache-2.0
//
// The echo server on libuv: one shared read buffer, `uv_try_write` first, and a queued write with a
// copy only for what the socket did not take.
#include "../echo.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <uv.h>

enum { buffer_bytes = 16384 };

struct pending_write {
    uv_write_t request;
    char data[];
};

static char buffer[buffer_bytes];
static uint64_t requests;
static uint64_t max_requests;
static uint64_t turns;

static void check(int error, char const* what) {
    if (error < 0) {
        fprintf(stderr, "echo: %s: %s\n", what, uv_strerror(error));
        exit(1);
    }
}

static void on_closed(uv_handle_t* handle) { free(handle); }

static void close_connection(uv_stream_t* peer) {
    if (!uv_is_closing((uv_handle_t*)peer)) {
        uv_close((uv_handle_t*)peer, on_closed);
    }
}

static void on_allocate(uv_handle_t* handle, size_t suggested, uv_buf_t* result) {
    (void)handle;
    (void)suggested;
    result->base = buffer;
    result->len = sizeof buffer;
}

static void count_request(uv_stream_t* peer) {
    if (++requests == max_requests) {
        uv_stop(peer->loop);
    }
}

static void on_read(uv_stream_t* peer, ssize_t size, uv_buf_t const* data);

static void on_written(uv_write_t* request, int error) {
    uv_stream_t* peer = request->handle;
    free(request);
    if (error != 0) {
        close_connection(peer);
        return;
    }
    count_request(peer);
    if (uv_read_start(peer, on_allocate, on_read) != 0) {
        close_connection(peer);
    }
}

// Queues what the socket did not take, and reads nothing more before it is gone.
static void write_later(uv_stream_t* peer, char const* data, size_t size) {
    struct pending_write* write = malloc(sizeof *write + size);
    if (write == NULL) {
        close_connection(peer);
        return;
    }
    memcpy(write->data, data, size);
    uv_buf_t const rest = uv_buf_init(write->data, (unsigned)size);
    uv_read_stop(peer);
    if (uv_write(&write->request, peer, &rest, 1, on_written) != 0) {
        free(write);
        close_connection(peer);
    }
}

static void on_read(uv_stream_t* peer, ssize_t size, uv_buf_t const* data) {
    if (size < 0) {
        close_connection(peer);
        return;
    }
    if (size == 0) {
        return;
    }
    uv_buf_t const reply = uv_buf_init(data->base, (unsigned)size);
    int const written = uv_try_write(peer, &reply, 1);
    if (written == size) {
        count_request(peer);
    } else if (written >= 0 || written == UV_EAGAIN) {
        size_t const sent = written > 0 ? (size_t)written : 0;
        write_later(peer, data->base + sent, (size_t)size - sent);
    } else {
        close_connection(peer);
    }
}

static void on_connection(uv_stream_t* listener, int error) {
    if (error != 0) {
        return;
    }
    uv_tcp_t* peer = malloc(sizeof *peer);
    if (peer == NULL) {
        return;
    }
    check(uv_tcp_init(listener->loop, peer), "uv_tcp_init");
    if (uv_accept(listener, (uv_stream_t*)peer) != 0 || uv_tcp_nodelay(peer, 1) != 0 ||
        uv_read_start((uv_stream_t*)peer, on_allocate, on_read) != 0) {
        close_connection((uv_stream_t*)peer);
    }
}

static void on_turn(uv_check_t* handle) {
    (void)handle;
    ++turns;
}

static void on_signal(uv_signal_t* handle, int number) {
    (void)number;
    uv_stop(handle->loop);
}

int main(int argc, char** argv) {
    struct echo_options options = {0};
    echo_parse_options(argc, argv, &options);
    max_requests = options.max_requests;

    uv_loop_t* loop = uv_default_loop();
    uv_tcp_t listener;
    uv_check_t turn_counter;
    uv_signal_t stop[2];
    struct sockaddr_in address;
    int address_size = sizeof address;
    check(uv_ip4_addr("127.0.0.1", options.port, &address), "uv_ip4_addr");
    check(uv_tcp_init(loop, &listener), "uv_tcp_init");
    check(uv_tcp_bind(&listener, (struct sockaddr*)&address, 0), "uv_tcp_bind");
    check(uv_listen((uv_stream_t*)&listener, echo_backlog, on_connection), "uv_listen");
    check(uv_tcp_getsockname(&listener, (struct sockaddr*)&address, &address_size),
          "uv_tcp_getsockname");
    check(uv_check_init(loop, &turn_counter), "uv_check_init");
    check(uv_check_start(&turn_counter, on_turn), "uv_check_start");
    int const signals[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; ++i) {
        check(uv_signal_init(loop, &stop[i]), "uv_signal_init");
        check(uv_signal_start(&stop[i], on_signal, signals[i]), "uv_signal_start");
    }
    signal(SIGPIPE, SIG_IGN);
    echo_print_listening(ntohs(address.sin_port));
    uv_run(loop, UV_RUN_DEFAULT);
    echo_print_result(requests, &turns);
    return 0;
}
