// SPDX-License-Identifier: Apache-2.0
//
// The echo server on libevent's bufferevents, without locks and with the epoll change list. A reply
// is written straight from the input buffer; only what the socket did not take goes through the
// output buffer, and nothing is read before it is gone.
#include "../echo.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>

static struct event_base* base;
static struct evconnlistener* listener;
static uint64_t requests;
static uint64_t max_requests;

static void count_request(void) {
    if (++requests == max_requests) {
        event_base_loopbreak(base);
    }
}

static void end_connection(struct bufferevent* peer) {
    bufferevent_free(peer);
    evconnlistener_enable(listener);  // in case that the descriptor table was full
}

static void on_event(struct bufferevent* peer, short events, void* context) {
    (void)context;
    if ((events & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0) {
        end_connection(peer);
    }
}

static void on_read(struct bufferevent* peer, void* context) {
    (void)context;
    struct evbuffer* input = bufferevent_get_input(peer);
    int const written = evbuffer_write(input, bufferevent_getfd(peer));
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        end_connection(peer);
    } else if (evbuffer_get_length(input) == 0) {
        count_request();
    } else {
        bufferevent_disable(peer, EV_READ);
        bufferevent_write_buffer(peer, input);
    }
}

// The output buffer is empty again.
static void on_written(struct bufferevent* peer, void* context) {
    (void)context;
    count_request();
    bufferevent_enable(peer, EV_READ);
}

static void on_accepted(struct evconnlistener* source, evutil_socket_t descriptor,
                        struct sockaddr* address, int size, void* context) {
    (void)source;
    (void)address;
    (void)size;
    (void)context;
    int const one = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct bufferevent* peer = bufferevent_socket_new(base, descriptor, BEV_OPT_CLOSE_ON_FREE);
    if (peer == NULL) {
        evutil_closesocket(descriptor);
        return;
    }
    bufferevent_setcb(peer, on_read, on_written, on_event, NULL);
    bufferevent_enable(peer, EV_READ);
}

// The descriptor table is full: trying again at once would spin.
static void on_accept_error(struct evconnlistener* source, void* context) {
    (void)context;
    evconnlistener_disable(source);
}

static void on_signal(evutil_socket_t number, short events, void* context) {
    (void)number;
    (void)events;
    (void)context;
    event_base_loopbreak(base);
}

int main(int argc, char** argv) {
    struct echo_options options = {0};
    echo_parse_options(argc, argv, &options);
    max_requests = options.max_requests;
    signal(SIGPIPE, SIG_IGN);

    struct event_config* config = event_config_new();
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    base = event_base_new_with_config(config);
    if (base == NULL) {
        echo_fail("event_base_new_with_config", errno);
    }
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_port = htons(options.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = evconnlistener_new_bind(
        base, on_accepted, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC,
        echo_backlog, (struct sockaddr*)&address, sizeof address);
    if (listener == NULL ||
        getsockname(evconnlistener_get_fd(listener), (struct sockaddr*)&address, &size) != 0) {
        echo_fail("cannot listen", errno);
    }
    evconnlistener_set_error_cb(listener, on_accept_error);
    event_add(evsignal_new(base, SIGTERM, on_signal, NULL), NULL);
    event_add(evsignal_new(base, SIGINT, on_signal, NULL), NULL);
    echo_print_listening(ntohs(address.sin_port));
    event_base_dispatch(base);
    echo_print_result(requests, NULL);
    return 0;
}
