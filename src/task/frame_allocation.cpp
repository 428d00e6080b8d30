// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/frame_allocation.hpp>

#include <new>

namespace plumb {

void* frame_allocation::allocate_from(frame_resource& from, std::size_t bytes) {
    void* const frame = from.functions_->allocate(from, with_origin(bytes));
    if (frame == nullptr) {
        throw_no_memory();
    }
    from.functions_->retain(from);
    mark(frame, bytes, &from);
    return frame;
}

void frame_allocation::deallocate_to(frame_resource& from, void* frame,
                                     std::size_t bytes) noexcept {
    from.functions_->deallocate(from, frame, with_origin(bytes));
    from.functions_->release(from);
}

void frame_allocation::throw_no_memory() { throw std::bad_alloc(); }

}  // namespace plumb
