// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/mapped_file_handle.hpp>

#include "handle/open_file.hpp"
#include "handle/outcome.hpp"

#include <algorithm>
#include <utility>

namespace plumb {

mapped_file_handle::mapped_file_handle(mapped_file_handle&& other) noexcept
    : seekable_handle(static_cast<seekable_handle&&>(other)),
      bytes_(std::exchange(other.bytes_, nullptr)),
      reservation_(std::exchange(other.reservation_, 0)) {}

mapped_file_handle& mapped_file_handle::operator=(mapped_file_handle&& other) noexcept {
    if (this != &other) {
        unmap();
        seekable_handle::operator=(static_cast<seekable_handle&&>(other));
        bytes_ = std::exchange(other.bytes_, nullptr);
        reservation_ = std::exchange(other.reservation_, 0);
    }
    return *this;
}

result<mapped_file_handle> mapped_file_handle::make(result<native_handle> native,
                                                    extent_type reservation) noexcept {
    if (!native) {
        return native.error();
    }
    mapped_file_handle mapped(*native);
    // The map is of the system's cache, which direct i/o goes past.
    if (mapped.alignment() != 1) {
        return std::errc::not_supported;
    }
    if (auto const reserved = mapped.reserve(reservation); !reserved) {
        return reserved.error();
    }
    return mapped;
}

result<mapped_file_handle> mapped_file_handle::mapped_file(path_handle const& base, path_view path,
                                                           mode access, creation existence,
                                                           caching cached,
                                                           extent_type reservation) noexcept {
    if (cached == caching::none) {
        return std::errc::not_supported;
    }
    return make(open_file(base, path, access, existence, cached), reservation);
}

result<mapped_file_handle> mapped_file_handle::map(file_handle const& file,
                                                   extent_type reservation) noexcept {
    return make(to_native(platform::os().duplicate(file.native())), reservation);
}

result<mapped_file_handle> mapped_file_handle::clone() const noexcept {
    return make(to_native(platform::os().duplicate(native())), reservation_);
}

result<mapped_file_handle> mapped_file_handle::reopen(mode access, caching cached) const noexcept {
    return make(reopen_file(native(), access, cached), reservation_);
}

result<void> mapped_file_handle::reserve(extent_type bytes) noexcept {
    if (bytes == 0) {
        auto const extent = maximum_extent();
        if (!extent) {
            return extent.error();
        }
        bytes = std::max(*extent, extent_type{1} << 30);
    }
    // The map may reach beyond the end of the file: what the file grows by appears in it.
    auto const& os = platform::os();
    auto const at = bytes_ == nullptr ? os.map_file(native(), bytes)
                                      : os.remap_file(bytes_, reservation_, bytes);
    if (at < 0) {
        return platform::error_of(at);
    }
    bytes_ = reinterpret_cast<std::byte*>(at);
    reservation_ = bytes;
    return {};
}

// The size is asked for each time: what is beyond the end must not be touched.
io_result<buffers> mapped_file_handle::read_mapped(io_request<buffers> request,
                                                   deadline limit) noexcept {
    if (request.buffers.empty()) {
        return request.buffers;
    }
    if (!limit.is_infinite()) {
        return std::errc::not_supported;
    }
    if (request.offset == request.no_offset) {
        return std::errc::invalid_argument;
    }
    auto const extent = maximum_extent();
    if (!extent) {
        return extent.error();
    }
    if (request.offset >= *extent) {
        if (request.offset < longest_seen(*extent)) {
            return error::file_shrank;
        }
        return buffers();
    }
    (void)longest_seen(*extent);
    if (request.offset >= reservation_) {
        return error::limit_exceeded;
    }
    auto const there = std::min(*extent, reservation_) - request.offset;
    return buffers(bytes_ + request.offset, std::min<extent_type>(request.buffers.bytes(), there));
}

result<void> mapped_file_handle::guard(void (*call)(void*) noexcept, void* object) const noexcept {
    if (platform::os().guard_map(bytes_, reservation_, call, object) < 0) {
        return error::map_fault;
    }
    return {};
}

result<void> mapped_file_handle::close() noexcept {
    unmap();
    return handle::close();
}

void mapped_file_handle::unmap() noexcept {
    if (bytes_ != nullptr) {
        (void)platform::os().unmap_file(std::exchange(bytes_, nullptr),
                                        std::exchange(reservation_, 0));
    }
}

}  // namespace plumb
