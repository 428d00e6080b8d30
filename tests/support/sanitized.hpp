// SPDX-License-Identifier: Apache-2.0
#pragma once

// PLUMB_TEST_SANITIZED: a sanitizer is linked, which has the functions of the C library for itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLUMB_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLUMB_TEST_SANITIZED 1
#endif
#endif

namespace plumb::test {

#ifdef PLUMB_TEST_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace plumb::test
