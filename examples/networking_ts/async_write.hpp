// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_read.hpp"

namespace networking_ts {

struct write_some {
    template <class Stream, class Buffers, class Handler>
    void operator()(Stream& s, Buffers const& from, Handler handler) const {
        s.async_write_some(from, std::move(handler));
    }
};

/// Writes all bytes, or until `condition` says that it is enough. Handler: `void(std::error_code, std::size_t)`.
template <class Stream, const_buffer_sequence Buffers, class Condition, class Token>
decltype(auto) async_write(Stream& s, Buffers const& from, Condition condition, Token&& token) {
    return async_transfer<const_buffer, write_some>(s, from, std::move(condition),
                                                    std::forward<Token>(token));
}
template <class Stream, const_buffer_sequence Buffers, class Token>
decltype(auto) async_write(Stream& s, Buffers const& from, Token&& token) {
    return networking_ts::async_write(s, from, transfer_all(), std::forward<Token>(token));
}

}  // namespace networking_ts
