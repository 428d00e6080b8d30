// SPDX-License-Identifier: Apache-2.0
// A failure that nobody looks at is a bug.
// expect: ignoring return value of
// expect: ignoring returned value of
// expect: ignoring temporary
#pragma GCC diagnostic error "-Wunused-result"
#include <plumb/base/result.hpp>

plumb::result<void> close() { return plumb::error::busy; }

int main() { close(); }
