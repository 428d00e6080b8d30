// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Where control is transferred between coroutines by a tail call, chains of any length use constant stack: Clang
// always, GCC only when it optimizes and without address or thread sanitizer.
#if defined(__clang__) ||                                                                          \
    (defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__))
#define PLUMB_TEST_HAS_TAIL_CALL 1
#else
#define PLUMB_TEST_HAS_TAIL_CALL 0
#endif

#define PLUMB_SKIP_WITHOUT_TAIL_CALL()                                                             \
    if (!PLUMB_TEST_HAS_TAIL_CALL) {                                                               \
        GTEST_SKIP() << "this compiler makes no tail call between coroutines with these options";  \
    }                                                                                              \
    static_cast<void>(0)

namespace plumb::test {

/// How deep the stack is, as an address: only differences mean something.
[[gnu::noinline]] inline std::intptr_t stack_depth() noexcept {
    return -reinterpret_cast<std::intptr_t>(__builtin_frame_address(0));
}

}  // namespace plumb::test
