// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb::test {

/// How often this thread has allocated from the heap, by malloc, operator new or otherwise.
[[nodiscard]] std::uint64_t heap_allocations() noexcept;

}  // namespace plumb::test
