// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/io_handle.hpp>

#include <plumb/handle/mapped_file_handle.hpp>

#include "handle/blocking.hpp"

namespace plumb {
namespace {

template <class Buffers>
io_result<Buffers> result_of(Buffers const& requested, platform::outcome moved) noexcept {
    if (moved < 0) {
        return platform::error_of(moved);
    }
    return requested.first(static_cast<std::size_t>(moved));
}

}  // namespace

io_result<buffers> io_handle::read(io_request<buffers> request, deadline limit) noexcept {
    if (is_seekable(kind())) {
        return kind() == handle_kind::file
                   ? static_cast<seekable_handle&>(*this).read_at(request, limit)
                   : static_cast<mapped_file_handle&>(*this).read_mapped(request, limit);
    }
    auto const b = request.buffers.untrimmed();
    if (b.bytes() == 0) {
        return b.first(0);
    }
    auto const again = platform::failed_with(std::errc::resource_unavailable_try_again);
    if (auto const received = take_received(b); received != again) {
        return result_of(b, received);
    }
    auto const& os = platform::os();
    auto const attempt = limit.is_infinite() ? os.read_waiting : os.read;
    return result_of(b, block(native(), platform::readable, limit, [&] {
                         return attempt(native(), kind(), b.native_array(), b.native_count());
                     }));
}

io_result<const_buffers> io_handle::write(io_request<const_buffers> request,
                                          deadline limit) noexcept {
    if (is_seekable(kind())) {
        return static_cast<seekable_handle&>(*this).write_at(request, limit);
    }
    auto const b = request.buffers.untrimmed();
    if (b.bytes() == 0) {
        return b.first(0);
    }
    return result_of(b, block(native(), platform::writable, limit, [&] {
                         return platform::os().write(native(), kind(), b.native_array(),
                                                     b.native_count());
                     }));
}

io_result<const_buffers> io_handle::barrier(io_request<const_buffers> request, barrier_kind kind,
                                            deadline limit) noexcept {
    if (is_seekable(this->kind())) {
        return static_cast<seekable_handle&>(*this).store(request, kind, limit);
    }
    if (!is_open()) {
        return std::errc::bad_file_descriptor;
    }
    return request.buffers;
}

}  // namespace plumb
