// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/frame_allocation.hpp>

#include <plumb/exec/pooled_memory.hpp>

#include <cstring>
#include <new>

namespace plumb {
namespace {

constexpr std::size_t with_origin(std::size_t bytes) noexcept {
    return bytes + sizeof(frame_resource*);
}

}  // namespace

void* frame_allocation::allocate(std::size_t bytes, frame_resource* from) {
    std::size_t const all = with_origin(bytes);
    void* const frame =
        from == nullptr ? pooled_allocate(all) : from->functions_->allocate(*from, all);
    if (frame == nullptr) {
        throw std::bad_alloc();
    }
    if (from != nullptr) {
        from->functions_->retain(*from);
    }
    std::memcpy(static_cast<std::byte*>(frame) + bytes, &from, sizeof(from));
    return frame;
}

void frame_allocation::operator delete(void* frame, std::size_t bytes) noexcept {
    frame_resource* from;
    std::memcpy(&from, static_cast<std::byte*>(frame) + bytes, sizeof(from));
    if (from == nullptr) {
        pooled_deallocate(frame, with_origin(bytes));
        return;
    }
    from->functions_->deallocate(*from, frame, with_origin(bytes));
    from->functions_->release(*from);
}

}  // namespace plumb
