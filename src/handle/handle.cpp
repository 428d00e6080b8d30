// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/handle.hpp>

#include <plumb/base/assert.hpp>

#include "platform/seam.hpp"

#include <utility>

namespace plumb {

constinit handle_slot handle_slot::none;

handle::handle(handle&& other) noexcept
    : native_(std::exchange(other.native_, no_native_handle)),
      slot_(other.take_slot()),
      multiplexer_(std::exchange(other.multiplexer_, nullptr)),
      kind_(other.kind_) {}

handle& handle::operator=(handle&& other) noexcept {
    if (this != &other) {
        if (is_open()) {
            (void)close();
        }
        native_ = std::exchange(other.native_, no_native_handle);
        slot_ = other.take_slot();
        multiplexer_ = std::exchange(other.multiplexer_, nullptr);
        kind_ = other.kind_;
    }
    return *this;
}

void handle::detach() noexcept {
    // It keeps the slot meanwhile: an operation that is on its way from another thread begins before.
    if (handle_slot* const s = slot()) {
        s->table->detach(*s);
        slot_ = &handle_slot::none;
    }
    multiplexer_ = nullptr;
}

result<void> handle::close() noexcept {
    if (!is_open()) {
        return {};
    }
    detach();
    auto const closed = platform::os().close(std::exchange(native_, no_native_handle));
    if (closed < 0) {
        return platform::error_of(closed);
    }
    return {};
}

result<native_handle> handle::release() noexcept {
    auto kind = kind_;
    if (handle_slot* const s = slot()) {
        kind = s->kind;
        if (auto const quiet = s->table->quiet(*s); !quiet) {
            return quiet.error();
        }
    }
    detach();
    if (kind == handle_kind::polled_pipe && is_open()) {
        (void)platform::os().set_blocking(native_, true);
    }
    return std::exchange(native_, no_native_handle);
}

std::int64_t handle::take_received(buffers const& to) noexcept {
    handle_slot* const s = slot();
    return s != nullptr ? s->table->take_received(*s, to)
                        : platform::failed_with(std::errc::resource_unavailable_try_again);
}

void handle::set_multiplexer(io_multiplexer& m) noexcept {
    handle_slot const* const s = slot();
    require(s == nullptr || s->multiplexer == &m,
            "set_multiplexer was called after the handle's first asynchronous use");
    multiplexer_ = &m;
}

}  // namespace plumb
