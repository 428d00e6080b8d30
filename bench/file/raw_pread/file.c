// SPDX-License-Identifier: Apache-2.0
//
// pread(2) in a loop; copying by copy_file_range(2).
#include "../file.h"

static int copy(const struct file_options* o) {
    uint64_t began = file_now();
    int from = open(o->path, O_RDONLY | O_CLOEXEC);
    int to = open(o->copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ssize_t moved = 1;
    while (moved > 0) {
        moved = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0);
    }
    if (moved < 0 || close(to) != 0) {
        file_fail("copy_file_range");
    }
    close(from);
    file_report_copy(began);
    return 0;
}

int main(int argc, char** argv) {
    struct file_options options = file_parse_options(argc, argv);
    if (options.copy != NULL) {
        return copy(&options);
    }
    struct file_places places = file_places_of(&options);
    int file = open(options.path, O_RDONLY | O_CLOEXEC | (options.direct ? O_DIRECT : 0));
    if (file < 0) {
        file_fail(options.path);
    }
    char* memory = (char*)file_memory(file_block);
    struct file_meter meter = file_meter_of(&options);
    do {
        if (pread(file, memory, file_block, (off_t)file_next_place(&places)) != file_block) {
            file_fail("pread");
        }
    } while (file_count(&meter));
    file_report(&meter);
    return 0;
}
