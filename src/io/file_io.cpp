// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/mapped_file_handle.hpp>
#include <plumb/handle/seekable_handle.hpp>

#include "io/io_backend.hpp"
#include "io/rest_of.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

// A read is first tried from memory, because a coroutine that need not suspend and a system call that need not be
// handed over cost less than the bytes. What isn't there costs a call for nothing, so that after misses in succession
// ever more reads go by without a try.
namespace plumb {
namespace {

using platform::failed_with;
using platform::outcome;

constexpr std::uint8_t most_untried = 63;
// Memory can't be asked.
constexpr std::uint8_t never_tried = 255;

outcome failed_with(std::error_code e) noexcept {
    return e.category() == plumb_category() ? failed_with(static_cast<error>(e.value()))
                                            : -outcome{e.value()};
}

/// The first buffers of a list, as many as one call takes.
const_buffers start_of(const_buffers const& list) noexcept {
    return list.native_count() <= platform::most_buffers
               ? list
               : const_buffers(list.native_array(), platform::most_buffers);
}

}  // namespace

void io_backend::set_file(handle_slot& s, handle& h) noexcept {
    s.native = h.native_;
    s.kind = h.kind();
    s.misses = static_cast<seekable_handle&>(h).alignment() == 1 ? 0 : never_tried;
    set_slot(h, s);
}

bool io_backend::goes_to_device(io_operation const& op) noexcept {
    return static_cast<seekable_handle const&>(*op.target_).alignment_ != 1;
}

outcome io_backend::begin_on_file(io_operation& op) noexcept {
    auto& file = static_cast<seekable_handle&>(*op.target_);
    op.outcome_ = 0;
    op.stage_ = stage::none;
    if (op.state_.what == action::read) {
        if (file.kind() == handle_kind::mapped_file) {
            return begin_mapped_read(op, static_cast<mapped_file_handle&>(file));
        }
        return file.aligned(io_request<buffers>(op.request_.read, op.offset_))
                   ? begin_read(op, file)
                   : failed_with(error::misaligned);
    }
    bool const writes = op.state_.what == action::write;
    if ((!writes && op.state_.what != action::barrier) || never_waits(op)) {
        return failed_with(std::errc::not_supported);
    }
    if (writes && !file.aligned(io_request<const_buffers>(op.request_.write, op.offset_))) {
        return failed_with(error::misaligned);
    }
    if (writes && file.appends_) {
        // Something else might be appended between two calls.
        op.request_.write = start_of(op.request_.write);
    }
    return again;
}

outcome io_backend::begin_mapped_read(io_operation& op, mapped_file_handle& file) noexcept {
    buffers const& wanted = op.request_.read;
    auto const read = file.read_mapped({wanted, op.offset_}, {});
    if (!read) {
        return plumb::failed_with(read.error());
    }
    // The address is the map's, the size stays that of the request, which may be started again.
    auto const there = static_cast<outcome>(read->bytes());
    op.request_.read = buffer((*read->begin()).data(), wanted.bytes());
    return there;
}

/// Whether the system, or the file's, can't tell what is in memory.
static bool is_unknown(outcome read) noexcept {
    return read == failed_with(std::errc::operation_not_supported) ||
           read == failed_with(std::errc::function_not_supported);
}

/// It costs a call for nothing: the next reads go by without one.
static void note_miss(handle_slot& s) noexcept {
    s.misses = s.misses_next;
    s.misses_next = std::min<std::uint8_t>(s.misses_next * 2 + 1, most_untried);
}

outcome io_backend::try_from_memory(io_operation& op, handle_slot& s) noexcept {
    buffers const& wanted = op.request_.read;
    auto const read = platform::os().try_read_at(s.native, wanted.native_array(), 1, op.offset_);
    if (read == static_cast<outcome>(wanted.bytes())) [[likely]] {
        s.misses_next = 0;
        return read;
    }
    if (read == again) {
        note_miss(s);
        ++s.misses;  // this one goes by, too
    }
    // What is less is read again.
    return read >= 0 || is_unknown(read) ? again : read;
}

/// Reads what is in memory.
outcome io_backend::begin_read(io_operation& op, seekable_handle& file) noexcept {
    handle_slot& s = *op.slot_;
    // Without an offset it may be what is no regular file, where the rest of a part can be long in coming.
    bool const somewhere = op.offset_ == io_request<buffers>::no_offset;
    if (somewhere && !never_waits(op)) {
        return again;
    }
    if (s.misses != 0 && !never_waits(op)) {
        s.misses -= s.misses != never_tried ? 1 : 0;
        return again;
    }
    if (file.alignment_ != 1) {
        return failed_with(std::errc::not_supported);  // past all memory, and without waiting
    }
    std::size_t const wanted = op.request_.read.bytes();
    for (;;) {
        auto const moved = static_cast<std::size_t>(op.outcome_);
        rest_of const part(op.request_.read, moved);
        auto const at = somewhere ? op.offset_ : op.offset_ + moved;
        auto const read = platform::os().try_read_at(s.native, part.array(), part.count(), at);
        if (read < 0) {
            if (read == again) {
                note_miss(s);
                return never_waits(op) && moved != 0 ? op.outcome_ : again;
            }
            bool const unknown = is_unknown(read);
            if (!unknown || never_waits(op)) {
                return moved != 0 ? op.outcome_
                                  : (unknown ? failed_with(std::errc::not_supported) : read);
            }
            s.misses = never_tried;
            return again;
        }
        s.misses_next = 0;
        op.outcome_ += read;
        if (read == 0 || static_cast<std::size_t>(op.outcome_) == wanted) {
            return op.outcome_;
        }
    }
}

outcome io_backend::do_part(io_operation& op) noexcept {
    auto const& os = platform::os();
    auto const moved = static_cast<std::size_t>(op.outcome_);
    bool const somewhere = op.offset_ == io_request<buffers>::no_offset;
    auto const at = somewhere ? op.offset_ : op.offset_ + moved;
    native_handle const native = op.slot_->native;
    if (op.state_.what == action::read) {
        rest_of const part(op.request_.read, moved);
        return os.read_at(native, part.array(), part.count(), at);
    }
    if (op.state_.what == action::write) {
        rest_of const part(op.request_.write, moved);
        return os.write_at(native, part.array(), part.count(), at);
    }
    return os.sync_file(native, op.barrier_, somewhere ? 0 : op.offset_,
                        somewhere ? 0 : op.request_.write.bytes());
}

outcome io_backend::add_part(io_operation& op, outcome part) noexcept {
    if (part < 0 || op.state_.what == action::barrier) {
        return op.outcome_ != 0 ? op.outcome_ : part;
    }
    auto const go_on = [&](auto const& list) {
        auto const moved = static_cast<std::size_t>(op.outcome_);
        op.outcome_ += part;
        // What moves less than it could is at the end of the file, or of the disk.
        return static_cast<std::size_t>(op.outcome_) != list.bytes() &&
               static_cast<std::size_t>(part) == rest_of(list, moved).bytes();
    };
    return (op.state_.what == action::read ? go_on(op.request_.read) : go_on(op.request_.write))
               ? again
               : op.outcome_;
}

}  // namespace plumb
