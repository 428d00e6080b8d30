// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/seekable_handle.hpp>

#include "handle/blocking.hpp"
#include "handle/outcome.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace plumb {
namespace {

using platform::failed_with;
using platform::outcome;

/// Room for bytes on their way, aligned for direct i/o.
struct alignas(4096) page {
    std::array<std::byte, 4096> bytes;
};

constexpr page zeros{};

constexpr bool needs_copying(outcome o) noexcept {
    return o == failed_with(std::errc::cross_device_link) ||
           o == failed_with(std::errc::invalid_argument) ||
           o == failed_with(std::errc::function_not_supported) ||
           o == failed_with(std::errc::operation_not_supported);
}

/// Makes the i/o that `call(bytes already done)` makes until all bytes are done.
/// Errors: `end_of_stream` where it moves nothing any more.
template <class Call>
result<void> repeat(extent_type bytes, Call call) noexcept {
    for (extent_type done = 0; done < bytes;) {
        auto const moved = call(done);
        if (!moved) {
            return moved.error();
        }
        if (moved->empty()) {
            return error::end_of_stream;
        }
        done += moved->bytes();
    }
    return {};
}

}  // namespace

seekable_handle::seekable_handle(handle_kind kind, native_handle native) noexcept
    : io_handle(kind, native) {
    platform::file_facts facts;
    if (platform::os().describe_file(native, facts) >= 0) {
        alignment_ = facts.alignment;
        appends_ = facts.appends;
    }
}

template <class Buffers>
bool seekable_handle::aligned(io_request<Buffers> const& request) const noexcept {
    if (alignment_ == 1) {
        return true;
    }
    auto const fits = [this](std::uint64_t n) { return n % alignment_ == 0; };
    return (request.offset == io_request<Buffers>::no_offset || appends_ || fits(request.offset)) &&
           std::ranges::all_of(request.buffers, [&](auto const& b) {
               return fits(reinterpret_cast<std::uintptr_t>(b.data())) && fits(b.size());
           });
}

template bool seekable_handle::aligned(io_request<buffers> const&) const noexcept;
template bool seekable_handle::aligned(io_request<const_buffers> const&) const noexcept;

// A list that is longer than one call takes goes on in another, unless something else may be
// appended in between.
template <class Buffers, class Call>
io_result<Buffers> seekable_handle::transfer(io_request<Buffers> const& request, deadline limit,
                                             Call call) noexcept {
    if (request.buffers.empty()) {
        return request.buffers;
    }
    if (!limit.is_infinite()) {
        return std::errc::not_supported;
    }
    if (!aligned(request)) {
        return error::misaligned;
    }
    auto const list = request.buffers.untrimmed();
    auto const* next = list.native_array();
    auto left = list.native_count();
    std::size_t moved = 0;
    for (;;) {
        auto const part = std::span(next, std::min(left, platform::most_buffers));
        auto const at =
            request.offset == request.no_offset ? request.offset : request.offset + moved;
        auto const now = call(part.data(), part.size(), at);
        if (now < 0 && moved == 0) {
            return platform::error_of(now);
        }
        moved += now < 0 ? 0 : static_cast<std::size_t>(now);
        next += part.size();
        left -= part.size();
        if (left == 0 || appends_ || now < static_cast<outcome>(Buffers(part).bytes())) {
            return list.first(moved);
        }
    }
}

io_result<buffers> seekable_handle::read_at(io_request<buffers> request, deadline limit) noexcept {
    return transfer(request, limit, [this](buffer const* b, std::size_t count, extent_type at) {
        return platform::os().read_at(native(), b, count, at);
    });
}

io_result<const_buffers> seekable_handle::write_at(io_request<const_buffers> request,
                                                   deadline limit) noexcept {
    return transfer(request, limit,
                    [this](const_buffer const* b, std::size_t count, extent_type at) {
                        return platform::os().write_at(native(), b, count, at);
                    });
}

io_result<const_buffers> seekable_handle::store(io_request<const_buffers> request,
                                                barrier_kind kind, deadline limit) noexcept {
    if (!limit.is_infinite()) {
        return std::errc::not_supported;
    }
    auto const everything = request.offset == request.no_offset;
    auto const done = platform::os().sync_file(native(), kind, everything ? 0 : request.offset,
                                               everything ? 0 : request.buffers.bytes());
    if (done < 0) {
        return platform::error_of(done);
    }
    return request.buffers;
}

result<extent_type> seekable_handle::maximum_extent() const noexcept {
    auto const size = platform::os().file_size(native());
    if (size < 0) {
        return platform::error_of(size);
    }
    return static_cast<extent_type>(size);
}

result<void> seekable_handle::truncate(extent_type extent) noexcept {
    auto const done = platform::os().resize_file(native(), extent);
    if (done >= 0) {
        std::atomic_ref(longest_seen_).store(extent, std::memory_order::relaxed);
    }
    return to_result(done);
}

// Several threads may read.
extent_type seekable_handle::longest_seen(extent_type extent) noexcept {
    std::atomic_ref const longest(longest_seen_);
    auto const before = longest.load(std::memory_order::relaxed);
    if (extent > before) {
        longest.store(extent, std::memory_order::relaxed);
    }
    return std::max(before, extent);
}

result<void> seekable_handle::zero(extent_type offset, extent_type bytes) noexcept {
    if (bytes == 0) {
        return {};
    }
    auto const& os = platform::os();
    auto const done = os.deallocate(native(), offset, bytes);
    if (done != failed_with(std::errc::operation_not_supported)) {
        return to_result(done);
    }
    if (appends_) {
        return std::errc::not_supported;
    }
    auto const extent = maximum_extent();
    if (!extent) {
        return extent.error();
    }
    if (offset >= *extent) {
        return {};
    }
    std::array<const_buffer, 16> list;
    list.fill(const_buffer(zeros.bytes));
    bytes = std::min(bytes, *extent - offset);
    return repeat(bytes, [&](extent_type n) {
        return write_at({const_buffers(list).first(bytes - n), offset + n}, {});
    });
}

result<extent_type> seekable_handle::clone_extents(extent_type offset, extent_type bytes,
                                                   seekable_handle& to,
                                                   extent_type to_offset) noexcept {
    if (to.appends_) {
        return std::errc::not_supported;
    }
    auto const extent = maximum_extent();
    if (!extent) {
        return extent.error();
    }
    bytes = offset < *extent ? std::min(bytes, *extent - offset) : 0;
    extent_type done = 0;
    while (done < bytes) {
        auto const now = platform::os().copy_range(native(), offset + done, to.native(),
                                                   to_offset + done, bytes - done);
        if (now <= 0) {
            if (now < 0 && !needs_copying(now)) {
                return platform::error_of(now);
            }
            break;
        }
        done += static_cast<extent_type>(now);
    }
    if (auto const rest = copy(offset + done, bytes - done, to, to_offset + done); !rest) {
        return rest.error();
    }
    return bytes;
}

// Where the ranges overlap, begins at the end that leaves alone what is still to be read.
result<void> seekable_handle::copy(extent_type offset, extent_type bytes, seekable_handle& to,
                                   extent_type to_offset) noexcept {
    std::array<page, 8> room;
    bool const backwards = to_offset > offset;
    for (extent_type done = 0; done < bytes;) {
        auto const size = std::min<extent_type>(sizeof(room), bytes - done);
        auto const at = backwards ? bytes - done - size : done;
        buffer const part(static_cast<void*>(&room), size);
        auto const read = repeat(size, [&](extent_type n) {
            return read_at({buffers(part.skip(n)), offset + at + n}, {});
        });
        if (!read) {
            return read;
        }
        auto const written = repeat(size, [&](extent_type n) {
            return to.write_at({const_buffers(part.skip(n)), to_offset + at + n}, {});
        });
        if (!written) {
            return written;
        }
        done += size;
    }
    return {};
}

// The system can wait for a lock, but not until a deadline.
result<range_lock> seekable_handle::lock_range(extent_type offset, extent_type bytes,
                                               range_lock::kind_type kind,
                                               deadline limit) noexcept {
    auto const what = kind == range_lock::kind_type::shared ? platform::range_locking::share
                                                            : platform::range_locking::exclude;
    auto const done = repeat_with_pauses(limit, [&] {
        return platform::os().lock_range(native(), what, offset, bytes, limit.is_infinite());
    });
    if (done < 0) {
        return platform::error_of(done);
    }
    return range_lock(native(), offset, bytes);
}

}  // namespace plumb
