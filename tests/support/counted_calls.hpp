// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"

#include <cstdint>

namespace plumb::test {

/// Counts the calls through the seam that i/o is made of, while it lives. One at a time.
class counted_calls {
public:
    counted_calls() noexcept : table_(platform::os()) {
        inner_ = platform::os();
        count_ = 0;
        table_.read = [](native_handle h, handle_kind k, buffer const* b, std::size_t n) noexcept {
            ++count_;
            return inner_.read(h, k, b, n);
        };
        table_.write = [](native_handle h, handle_kind k, const_buffer const* b,
                          std::size_t n) noexcept {
            ++count_;
            return inner_.write(h, k, b, n);
        };
        table_.send = [](native_handle h, const_buffers const& b, endpoint const& to) noexcept {
            ++count_;
            return inner_.send(h, b, to);
        };
        table_.receive = [](native_handle h, buffers const& b, endpoint& from) noexcept {
            ++count_;
            return inner_.receive(h, b, from);
        };
        table_.accept = [](native_handle h) noexcept {
            ++count_;
            return inner_.accept(h);
        };
        table_.connect = [](native_handle h, endpoint const& e) noexcept {
            ++count_;
            return inner_.connect(h, e);
        };
        table_.read_at = [](native_handle h, buffer const* b, std::size_t n,
                            extent_type at) noexcept {
            ++count_;
            return inner_.read_at(h, b, n, at);
        };
        table_.try_read_at = [](native_handle h, buffer const* b, std::size_t n,
                                extent_type at) noexcept {
            ++count_;
            return inner_.try_read_at(h, b, n, at);
        };
        table_.write_at = [](native_handle h, const_buffer const* b, std::size_t n,
                             extent_type at) noexcept {
            ++count_;
            return inner_.write_at(h, b, n, at);
        };
        table_.sync_file = [](native_handle h, barrier_kind k, extent_type at,
                              extent_type bytes) noexcept {
            ++count_;
            return inner_.sync_file(h, k, at, bytes);
        };
        table_.poller_add = [](native_handle p, native_handle h, std::uint64_t key) noexcept {
            ++count_;
            return inner_.poller_add(p, h, key);
        };
        before_ = platform::replace_seam(&table_);
    }
    counted_calls(counted_calls const&) = delete;
    counted_calls& operator=(counted_calls const&) = delete;
    ~counted_calls() { platform::replace_seam(before_); }

    [[nodiscard]] std::uint64_t made() const noexcept { return count_; }

private:
    static inline platform::seam inner_{};
    static inline std::uint64_t count_ = 0;

    platform::seam table_;
    platform::seam const* before_ = nullptr;
};

}  // namespace plumb::test
