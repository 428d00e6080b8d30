// SPDX-License-Identifier: Apache-2.0
#include "support/hidden_costs.hpp"

#include "support/allocations.hpp"
#include "support/sanitized.hpp"

#include <cstddef>
#include <cstdlib>
#include <typeinfo>

#include <dlfcn.h>
#include <pthread.h>

namespace plumb::test {
namespace {

constinit thread_local std::uint64_t locks_taken = 0;
constinit thread_local std::uint64_t exceptions_made = 0;

#ifndef PLUMB_TEST_SANITIZED
/// The function that the one of this name stands before.
template <class Function>
Function* next(char const* name) noexcept {
    void* const found = ::dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}
#endif

}  // namespace

hidden_costs hidden_costs::so_far() noexcept {
    return {heap_allocations(), locks_taken, exceptions_made};
}

}  // namespace plumb::test

#ifndef PLUMB_TEST_SANITIZED

using plumb::test::exceptions_made;
using plumb::test::locks_taken;
using plumb::test::next;

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
    static auto* const lock = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
    ++locks_taken;
    return lock(m);
}
int pthread_mutex_trylock(pthread_mutex_t* m) noexcept {
    static auto* const lock = next<int(pthread_mutex_t*)>("pthread_mutex_trylock");
    ++locks_taken;
    return lock(m);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* l) noexcept {
    static auto* const lock = next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
    ++locks_taken;
    return lock(l);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
    static auto* const lock = next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
    ++locks_taken;
    return lock(l);
}

void* __cxa_allocate_exception(std::size_t size) noexcept {
    static auto* const allocate = next<void*(std::size_t)>("__cxa_allocate_exception");
    ++exceptions_made;
    return allocate(size);
}
}

#endif
