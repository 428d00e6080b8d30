// SPDX-License-Identifier: Apache-2.0
//
// The echo server on a bare ring: what the kernel's interface costs when nothing is in between.
// One system call a turn submits everything and waits. Accept and receive are multishot; received
// bytes land in a ring of provided buffers and are sent from there; sockets live in the ring's own
// descriptor table; one thread issues, and the kernel's part of the work runs when it waits.
//
// A send is first tried without waiting and reports only failure: when the system call returns, a
// try without a completion has taken all of its buffer. What did not fit is sent again, now with a
// completion. A connection sends one buffer at a time, so that bytes keep their order; further ones
// that were received meanwhile wait in a list through `next_buffer`. At most all the buffers are
// held, then receives end with ENOBUFS and start again when some came back.
#define _GNU_SOURCE
#include "../listener.h"

#include <liburing.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define cold __attribute__((cold, noinline))

enum {
    submission_entries = 512,
    completion_entries = 4096,
    buffer_count = 1024,  // a power of two
    buffer_bytes = 1024,
    buffer_group = 0,
    most_connections = 32768,
    no_connection = UINT32_MAX,
};

enum operation { accepting, receiving, trying, sending, shutting_down, closing, stopping };

// What is under way with a connection's first buffer: nothing without one, else a send that
// reports only failure, submitted in an even or an odd turn, then, if that failed, one that reports
// always.
enum send_state { no_send, tried_even, tried_odd, send_pending };

struct connection {
    uint16_t first_buffer;  // being sent
    uint16_t last_buffer;
    uint16_t begin;  // of what is not sent of the first buffer
    uint8_t sends;   // a send_state
    bool receives;   // a multishot receive is under way
    bool broken;     // a send failed; what is still received is dropped
    uint32_t next_starved;
};

static struct io_uring ring;
static struct io_uring_buf_ring* free_buffers;
static char (*buffers)[buffer_bytes];
static uint16_t buffer_size[buffer_count];
static uint16_t next_buffer[buffer_count];
static unsigned held_buffers;
static unsigned returned_buffers;  // in this turn, not yet told to the kernel
static struct connection connections[most_connections];
// The connections whose send was tried in an even and in an odd turn.
static uint32_t tries[2][most_connections];
static uint32_t* tries_end[2] = {tries[0], tries[1]};
static bool tries_have_followers;  // something is to be done when they have succeeded
static unsigned this_turn;         // 0: even, 1: odd
static uint32_t first_starved = no_connection;
static int listener;
static bool accept_paused;  // the ring's descriptor table was full
static uint64_t requests;

cold static struct io_uring_sqe* next_submission_when_full(void) {
    struct io_uring_sqe* entry = NULL;
    while (entry == NULL) {
        io_uring_submit(&ring);
        entry = io_uring_get_sqe(&ring);
    }
    return entry;
}

static struct io_uring_sqe* next_submission(void) {
    struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
    return entry != NULL ? entry : next_submission_when_full();
}

static void tag(struct io_uring_sqe* entry, enum operation operation, uint32_t index) {
    entry->user_data = (uint64_t)index << 8 | operation;
}

static void start_accept(void) {
    struct io_uring_sqe* entry = next_submission();
    io_uring_prep_multishot_accept_direct(entry, listener, NULL, NULL, 0);
    tag(entry, accepting, 0);
}

cold static void start_receive(uint32_t index) {
    struct io_uring_sqe* entry = next_submission();
    io_uring_prep_recv_multishot(entry, (int)index, NULL, 0, 0);
    entry->flags |= IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
    entry->buf_group = buffer_group;
    tag(entry, receiving, index);
    connections[index].receives = true;
}

static struct io_uring_sqe* prepare_send(uint32_t index, int flags, enum operation operation) {
    struct connection const* peer = &connections[index];
    uint16_t const buffer = peer->first_buffer;
    struct io_uring_sqe* entry = next_submission();
    io_uring_prep_send(entry, (int)index, buffers[buffer] + peer->begin,
                       (size_t)(buffer_size[buffer] - peer->begin), flags);
    entry->flags |= IOSQE_FIXED_FILE;
    tag(entry, operation, index);
    return entry;
}

cold static void send_reporting(uint32_t index) {
    prepare_send(index, MSG_NOSIGNAL | MSG_WAITALL, sending);
    connections[index].sends = send_pending;
}

static void start_send(uint32_t index) {
    struct connection const* peer = &connections[index];
    tries_have_followers |= peer->first_buffer != peer->last_buffer || !peer->receives;
    int const flags = MSG_NOSIGNAL | MSG_WAITALL | MSG_DONTWAIT;
    prepare_send(index, flags, trying)->flags |= IOSQE_CQE_SKIP_SUCCESS;
    connections[index].sends = (uint8_t)(tried_even + this_turn);
    *tries_end[this_turn]++ = index;
}

static void return_buffer(uint16_t buffer) {
    io_uring_buf_ring_add(free_buffers, buffers[buffer], buffer_bytes, buffer,
                          io_uring_buf_ring_mask(buffer_count), (int)returned_buffers);
    ++returned_buffers;
    --held_buffers;
}

static void close_when_idle(uint32_t index) {
    if (!connections[index].receives && connections[index].sends == no_send) {
        struct io_uring_sqe* entry = next_submission();
        io_uring_prep_close_direct(entry, index);
        tag(entry, closing, index);
    }
}

cold static void on_accepted(int result, uint32_t flags) {
    if (result >= 0) {
        connections[result] = (struct connection){0};
        start_receive((uint32_t)result);
    }
    if ((flags & IORING_CQE_F_MORE) == 0) {
        accept_paused = result == -ENFILE;
        if (!accept_paused) {
            start_accept();
        }
    }
}

static void on_received(uint32_t index, int result, uint32_t flags) {
    struct connection* peer = &connections[index];
    if (result > 0) {
        uint16_t const buffer = (uint16_t)(flags >> IORING_CQE_BUFFER_SHIFT);
        ++held_buffers;
        buffer_size[buffer] = (uint16_t)result;
        if (peer->broken) {
            return_buffer(buffer);
        } else if (peer->sends == no_send) {
            peer->first_buffer = peer->last_buffer = buffer;
            peer->begin = 0;
            start_send(index);
        } else {
            next_buffer[peer->last_buffer] = buffer;
            peer->last_buffer = buffer;
            tries_have_followers = true;
        }
        if ((flags & IORING_CQE_F_MORE) == 0) {
            start_receive(index);
        }
    } else if (result == -ENOBUFS) {
        peer->next_starved = first_starved;  // still counts as receiving, so nothing closes it
        first_starved = index;
        tries_have_followers = true;
    } else if ((flags & IORING_CQE_F_MORE) == 0) {
        peer->receives = false;
        tries_have_followers = true;
        close_when_idle(index);
    }
}

static void on_buffer_sent(uint32_t index) {
    struct connection* peer = &connections[index];
    uint16_t const buffer = peer->first_buffer;
    ++requests;
    return_buffer(buffer);
    if (buffer != peer->last_buffer) {
        peer->first_buffer = next_buffer[buffer];
        peer->begin = 0;
        start_send(index);
    } else {
        peer->sends = no_send;
        close_when_idle(index);
    }
}

cold static void on_send_failed(uint32_t index) {
    struct connection* peer = &connections[index];
    uint16_t buffer = peer->first_buffer;
    while (buffer != peer->last_buffer) {
        return_buffer(buffer);
        buffer = next_buffer[buffer];
    }
    return_buffer(buffer);
    peer->sends = no_send;
    peer->broken = true;
    if (peer->receives) {
        // Ends the receive, whose completion closes the socket.
        struct io_uring_sqe* entry = next_submission();
        io_uring_prep_shutdown(entry, (int)index, SHUT_RDWR);
        entry->flags |= IOSQE_FIXED_FILE;
        tag(entry, shutting_down, index);
    } else {
        close_when_idle(index);
    }
}

// The completion of a send that reports always, or of a try that did not send its whole buffer.
cold static void on_sent(uint32_t index, int result) {
    struct connection* peer = &connections[index];
    if (result < 0 && result != -EINTR && result != -EAGAIN) {
        on_send_failed(index);
        return;
    }
    peer->begin = (uint16_t)(peer->begin + (result > 0 ? result : 0));
    if (peer->begin == buffer_size[peer->first_buffer]) {
        on_buffer_sent(index);
    } else {
        send_reporting(index);
    }
}

// The tries that were submitted with the last system call and did not report failure are done.
static void settle_tries(unsigned turn) {
    for (uint32_t const* each = tries[turn]; each != tries_end[turn]; ++each) {
        if (connections[*each].sends == tried_even + turn) {
            on_buffer_sent(*each);
        }
    }
    tries_end[turn] = tries[turn];
}

static void on_closed(void) {
    if (accept_paused) {
        accept_paused = false;
        start_accept();
    }
}

// Tells the kernel of the buffers that came back, and starts the receives that waited for them.
static void hand_out_buffers(void) {
    if (returned_buffers != 0) {
        io_uring_buf_ring_advance(free_buffers, (int)returned_buffers);
        returned_buffers = 0;
    }
    while (first_starved != no_connection && held_buffers < buffer_count) {
        uint32_t const index = first_starved;
        first_starved = connections[index].next_starved;
        start_receive(index);
    }
}

static void set_up_ring(void) {
    struct io_uring_params parameters = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE,
        .cq_entries = completion_entries,
    };
    int error = io_uring_queue_init_params(submission_entries, &ring, &parameters);
    if (error != 0) {
        echo_fail("io_uring_queue_init_params", -error);
    }
    error = io_uring_register_ring_fd(&ring);
    if (error != 1) {
        echo_fail("io_uring_register_ring_fd", -error);
    }
    struct rlimit descriptors;
    getrlimit(RLIMIT_NOFILE, &descriptors);
    error = io_uring_register_files_sparse(&ring, descriptors.rlim_cur < most_connections
                                                      ? (unsigned)descriptors.rlim_cur
                                                      : (unsigned)most_connections);
    if (error != 0) {
        echo_fail("io_uring_register_files_sparse", -error);
    }

    free_buffers = mmap(NULL, buffer_count * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    buffers = mmap(NULL, sizeof *buffers * buffer_count, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (free_buffers == MAP_FAILED || buffers == MAP_FAILED) {
        echo_fail("mmap", errno);
    }
    struct io_uring_buf_reg registration = {
        .ring_addr = (uintptr_t)free_buffers, .ring_entries = buffer_count, .bgid = buffer_group};
    error = io_uring_register_buf_ring(&ring, &registration, 0);
    if (error != 0) {
        echo_fail("io_uring_register_buf_ring", -error);
    }
    io_uring_buf_ring_init(free_buffers);
    held_buffers = buffer_count;
    for (unsigned i = 0; i < buffer_count; ++i) {
        return_buffer((uint16_t)i);
    }
    hand_out_buffers();
}

int main(int argc, char** argv) {
    struct echo_options options = {0};
    echo_parse_options(argc, argv, &options);

    set_up_ring();
    listener = echo_listen(&options.port, 0);
    struct io_uring_sqe* entry = next_submission();
    io_uring_prep_poll_add(entry, echo_stop_signal(), POLLIN);
    tag(entry, stopping, 0);
    start_accept();
    echo_print_listening(options.port);

    uint64_t turns = 0;
    bool stopped = false;
    while (!stopped && requests < options.max_requests) {
        // A try that succeeds ends no wait.
        uint64_t const tried = (uint64_t)(tries_end[this_turn] - tries[this_turn]);
        bool const waits =
            tried == 0 || (!tries_have_followers && requests + tried < options.max_requests);
        tries_have_followers = first_starved != no_connection;
        unsigned const submitted_turn = this_turn;
        this_turn ^= 1;
        int const error = io_uring_submit_and_wait(&ring, waits ? 1 : 0);
        if (error < 0 && error != -EINTR) {
            echo_fail("io_uring_submit_and_wait", -error);
        }
        ++turns;
        struct io_uring_cqe* completion;
        unsigned head;
        unsigned completions = 0;
        io_uring_for_each_cqe(&ring, head, completion) {
            uint32_t const index = (uint32_t)(completion->user_data >> 8);
            switch ((enum operation)(completion->user_data & 0xff)) {
            case receiving:
                on_received(index, completion->res, completion->flags);
                break;
            case trying:
            case sending:
                on_sent(index, completion->res);
                break;
            case accepting:
                on_accepted(completion->res, completion->flags);
                break;
            case shutting_down:
                break;
            case closing:
                on_closed();
                break;
            case stopping:
                stopped = true;
                break;
            }
            ++completions;
        }
        io_uring_cq_advance(&ring, completions);
        settle_tries(submitted_turn);
        hand_out_buffers();
    }
    echo_print_result(requests, &turns);
    return 0;
}
