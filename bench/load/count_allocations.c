// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a server, counts what it asks of the heap, `operator new` included where it is
// not replaced, and writes the number to the file that COUNT_ALLOCATIONS_TO names when the
// server exits.
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

// glibc's own names of what is replaced here.
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* block, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static atomic_ulong allocations;

static void count(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void* malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void* realloc(void* block, size_t size) {
    count();
    return __libc_realloc(block, size);
}

void* memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
    count();
    *block = __libc_memalign(alignment, size);
    return *block == NULL ? ENOMEM : 0;
}

__attribute__((destructor)) static void report(void) {
    unsigned long const total = atomic_load(&allocations);  // without those of this function
    char const* path = getenv("COUNT_ALLOCATIONS_TO");
    FILE* file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        fprintf(file, "%lu\n", total);
        fclose(file);
    }
}
