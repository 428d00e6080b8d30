// SPDX-License-Identifier: Apache-2.0
#include "platform/seam.hpp"

#include <plumb/exec/pooled_memory.hpp>

#include <new>

// All that the code under test asks a system for.
namespace plumb::platform::internal {
namespace {

constexpr std::align_val_t alignment{pooled_memory_alignment};

constinit seam const memory_alone = [] {
    seam s{};
    s.take_memory = [](std::size_t bytes) noexcept {
        return ::operator new(bytes, alignment, std::nothrow);
    };
    s.give_memory = [](void* memory) noexcept { ::operator delete(memory, alignment); };
    return s;
}();

}  // namespace

constinit seam const* current = &memory_alone;

}  // namespace plumb::platform::internal
