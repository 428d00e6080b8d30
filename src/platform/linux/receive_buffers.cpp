// SPDX-License-Identifier: Apache-2.0
#include "platform/linux/receive_buffers.hpp"

#include <sys/mman.h>

namespace plumb::platform {

receive_buffers::~receive_buffers() {
    if (entries_ != nullptr) {
        ::munmap(entries_, entries_size + count * stride);
    }
}

// One mapping: what is shared with the kernel starts a page, the buffers follow.
bool receive_buffers::map() noexcept {
    void* const memory = ::mmap(nullptr, entries_size + count * stride, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    entries_ = static_cast<io_uring_buf*>(memory);
    bytes_ = static_cast<std::byte*>(memory) + entries_size;
    return true;
}

void receive_buffers::join(ring& r) noexcept {
    available_ = false;
    if (entries_ == nullptr && !map()) {
        return;
    }
    io_uring_buf_reg registration{};
    registration.ring_addr = reinterpret_cast<std::uintptr_t>(entries_);
    registration.ring_entries = count;
    registration.bgid = group;
    if (r.add_buffers(registration) < 0) {
        return;
    }
    available_ = true;
    publish(0);
    for (std::uint16_t id = 0; id < count; ++id) {
        if (extents_[id].end == 0) {
            recycle(id);
        }
    }
}

void receive_buffers::park(parked_bytes& queue, std::uint16_t id, std::size_t begin,
                           std::size_t end) noexcept {
    extents_[id] = {0, static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)};
    if (queue.count++ == 0) {
        queue.first = id;
    } else {
        extents_[queue.last].next = id;
    }
    queue.last = id;
}

std::span<std::byte const> receive_buffers::front(parked_bytes const& queue) const noexcept {
    extent const& e = extents_[queue.first];
    return {data(queue.first) + e.begin, data(queue.first) + e.end};
}

void receive_buffers::drop_front(parked_bytes& queue, std::size_t bytes) noexcept {
    std::uint16_t const id = queue.first;
    extent& e = extents_[id];
    e.begin = static_cast<std::uint16_t>(e.begin + bytes);
    if (e.begin == e.end) {
        queue.first = e.next;
        --queue.count;
        e.end = 0;
        recycle(id);
    }
}

void receive_buffers::drop_all(parked_bytes& queue) noexcept {
    while (queue.count != 0) {
        drop_front(queue, front(queue).size());
    }
}

}  // namespace plumb::platform
