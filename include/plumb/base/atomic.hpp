// SPDX-License-Identifier: Apache-2.0
#pragma once

// PLUMB_ATOMIC_HEADER names a header with another `plumb::atomic`: tests/model/ has one whose operations are run in
// every order.
#ifdef PLUMB_ATOMIC_HEADER
#include PLUMB_ATOMIC_HEADER
#else
#include <atomic>

namespace plumb {

/// The atomic variables of what is also checked under all interleavings of small cases.
template <class T>
using atomic = std::atomic<T>;

}  // namespace plumb
#endif
