// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/buffer.hpp>

#include <cstddef>

#include <sys/uio.h>

namespace plumb {

// Arrays of buffers go to the kernel as arrays of iovec.
struct layout_check {
    static_assert(sizeof(const_buffer) == sizeof(iovec) && sizeof(buffer) == sizeof(iovec));
    static_assert(alignof(const_buffer) == alignof(iovec) && alignof(buffer) == alignof(iovec));
    static_assert(offsetof(const_buffer, data_) == offsetof(iovec, iov_base));
    static_assert(offsetof(const_buffer, size_) == offsetof(iovec, iov_len));
    static_assert(sizeof(const_buffer::data_) == sizeof(iovec::iov_base));
    static_assert(sizeof(const_buffer::size_) == sizeof(iovec::iov_len));
    static_assert(std::is_standard_layout_v<buffer>, "its only members are those of const_buffer");
};

}  // namespace plumb
