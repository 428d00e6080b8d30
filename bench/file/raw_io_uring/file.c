// SPDX-License-Identifier: Apache-2.0
//
// liburing: each read that is over is followed by another, and one call submits all of them and waits.
#include "../file.h"

#include <liburing.h>

static struct io_uring ring;
static char* memory;
static int file;
static struct file_places places;

static void issue(int place) {
    struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
    io_uring_prep_read(entry, file, memory + (size_t)place * file_block, file_block,
                       file_next_place(&places));
    io_uring_sqe_set_data64(entry, (uint64_t)place);
}

int main(int argc, char** argv) {
    struct file_options options = file_parse_options(argc, argv);
    places = file_places_of(&options);
    file = open(options.path, O_RDONLY | O_CLOEXEC | (options.direct ? O_DIRECT : 0));
    if (file < 0 || options.copy != NULL) {
        file_fail(options.path);
    }
    if (io_uring_queue_init(file_most_in_flight, &ring,
                            IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) != 0) {
        file_fail("io_uring_queue_init");
    }
    memory = (char*)file_memory((size_t)options.in_flight * file_block);
    struct file_meter meter = file_meter_of(&options);
    for (int i = 0; i < options.in_flight; ++i) {
        issue(i);
    }
    int more = 1;
    while (more) {
        io_uring_submit_and_wait(&ring, 1);
        struct io_uring_cqe* entry;
        unsigned head;
        unsigned count = 0;
        io_uring_for_each_cqe(&ring, head, entry) {
            ++count;
            if (entry->res != file_block) {
                file_fail("read");
            }
            if (more) {
                more = file_count(&meter);
                issue((int)io_uring_cqe_get_data64(entry));
            }
        }
        io_uring_cq_advance(&ring, count);
    }
    file_report(&meter);
    return 0;
}
