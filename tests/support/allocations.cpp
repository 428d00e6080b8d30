// SPDX-License-Identifier: Apache-2.0
#include "support/allocations.hpp"

#include "support/sanitized.hpp"

#include <cstddef>

namespace plumb::test {
namespace {

constinit thread_local std::uint64_t allocations = 0;

}  // namespace

std::uint64_t heap_allocations() noexcept { return allocations; }

}  // namespace plumb::test

#ifdef PLUMB_TEST_SANITIZED

// The sanitizers own malloc; they tell of each allocation.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(void const volatile*,
                                                                  std::size_t),
                                                         void (*)(void const volatile*));

namespace {

[[maybe_unused]] int const installed = __sanitizer_install_malloc_and_free_hooks(
    [](void const volatile*, std::size_t) { ++plumb::test::allocations; },
    [](void const volatile*) {});

}  // namespace

#else

// Stands before the C library's; `operator new` calls malloc.
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

void* malloc(std::size_t size) noexcept {
    ++plumb::test::allocations;
    return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
    ++plumb::test::allocations;
    return __libc_calloc(count, size);
}
void* realloc(void* block, std::size_t size) noexcept {
    ++plumb::test::allocations;
    return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    ++plumb::test::allocations;
    return __libc_memalign(alignment, size);
}
}

#endif
