// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/handle.hpp>

#include <plumb/base/assert.hpp>

#include "platform/seam.hpp"

#include <utility>

namespace plumb {

handle::handle(handle&& other) noexcept
    : native_(std::exchange(other.native_, no_native_handle)),
      slot_(std::exchange(other.slot_, nullptr)),
      multiplexer_(std::exchange(other.multiplexer_, nullptr)),
      kind_(other.kind_) {}

handle& handle::operator=(handle&& other) noexcept {
    if (this != &other) {
        if (is_open()) {
            (void)close();
        }
        native_ = std::exchange(other.native_, no_native_handle);
        slot_ = std::exchange(other.slot_, nullptr);
        multiplexer_ = std::exchange(other.multiplexer_, nullptr);
        kind_ = other.kind_;
    }
    return *this;
}

result<void> handle::close() noexcept {
    if (!is_open()) {
        return {};
    }
    if (slot_ != nullptr) {
        slot_->table->detach(*std::exchange(slot_, nullptr));
    }
    multiplexer_ = nullptr;
    auto const closed = platform::os().close(std::exchange(native_, no_native_handle));
    if (closed < 0) {
        return platform::error_of(closed);
    }
    return {};
}

result<native_handle> handle::release() noexcept {
    auto const kind = slot_ != nullptr ? slot_->kind : kind_;
    if (slot_ != nullptr) {
        if (auto const quiet = slot_->table->quiet(*slot_); !quiet) {
            return quiet.error();
        }
        slot_->table->detach(*std::exchange(slot_, nullptr));
    }
    if (kind == handle_kind::polled_pipe && is_open()) {
        (void)platform::os().set_blocking(native_, true);
    }
    multiplexer_ = nullptr;
    return std::exchange(native_, no_native_handle);
}

std::int64_t handle::take_received(buffers const& to) noexcept {
    return slot_ != nullptr ? slot_->table->take_received(*slot_, to)
                            : platform::failed_with(std::errc::resource_unavailable_try_again);
}

void handle::set_multiplexer(io_multiplexer& m) noexcept {
    require(slot_ == nullptr || slot_->multiplexer == &m,
            "set_multiplexer was called after the handle's first asynchronous use");
    multiplexer_ = &m;
}

}  // namespace plumb
