// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_result.hpp"
#include "networking_ts/buffer.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <system_error>
#include <type_traits>
#include <utility>

namespace networking_ts {

// Completion conditions: how many more bytes an operation wants, after an error and so many bytes; 0 ends it.

struct transfer_all {
    std::size_t operator()(std::error_code error, std::size_t) const noexcept {
        return error ? 0 : std::numeric_limits<std::size_t>::max();
    }
};
class transfer_at_least {
public:
    explicit transfer_at_least(std::size_t bytes) noexcept : least_(bytes) {}
    std::size_t operator()(std::error_code error, std::size_t done) const noexcept {
        return done < least_ ? transfer_all()(error, done) : 0;
    }

private:
    std::size_t least_;
};
class transfer_exactly {
public:
    explicit transfer_exactly(std::size_t bytes) noexcept : wanted_(bytes) {}
    std::size_t operator()(std::error_code error, std::size_t done) const noexcept {
        return error ? 0 : wanted_ - std::min(done, wanted_);
    }

private:
    std::size_t wanted_;
};

/// One operation after the other until a condition says that it is enough, or all bytes are moved. Each is an operation
/// of the stream with a block of its own, which is the one that the last has left where the pool recycles.
/// @tparam Some  begins one operation: `(stream, buffers, handler)`
template <class Buffer, class Some, class Stream, class Buffers, class Condition, class Handler>
class transfer {
public:
    transfer(Stream& s, Buffers const& buffers, Condition condition, Handler handler)
        : stream_(&s),
          buffers_(buffers),
          condition_(std::move(condition)),
          handler_(std::move(handler)) {}

    /// Also where nothing is to be moved, so that the handler isn't called from here.
    void start() { some(condition_(std::error_code(), 0)); }

    [[nodiscard]] Handler const& next() const noexcept { return handler_; }

    void operator()(std::error_code error, std::size_t bytes) {
        done_ += bytes;
        std::size_t const more = condition_(error, done_);
        if (more == 0 || done_ == buffer_size(buffers_)) {
            handler_(error, done_);
        } else {
            some(more);
        }
    }

private:
    void some(std::size_t most) {
        Stream& s = *stream_;
        gathered<Buffer> const rest(buffers_, done_, most);
        Some()(s, rest, std::move(*this));
    }

    Stream* stream_;
    Buffers buffers_;
    std::size_t done_ = 0;
    Condition condition_;
    Handler handler_;
};

struct read_some {
    template <class Stream, class Buffers, class Handler>
    void operator()(Stream& s, Buffers const& into, Handler handler) const {
        s.async_read_some(into, std::move(handler));
    }
};

template <class Buffer, class Some, class Stream, class Buffers, class Condition, class Token>
decltype(auto) async_transfer(Stream& s, Buffers const& buffers, Condition condition,
                              Token&& token) {
    return async_initiate<void(std::error_code, std::size_t)>(
        [](auto handler, Stream* stream, Buffers const& all, Condition enough) {
            transfer<Buffer, Some, Stream, Buffers, Condition, decltype(handler)>(
                *stream, all, std::move(enough), std::move(handler))
                .start();
        },
        std::forward<Token>(token), &s, buffers, std::move(condition));
}

/// Fills the buffers, or reads until `condition` says that it is enough.
/// Handler: `void(std::error_code, std::size_t)`, with all bytes that were read.
template <class Stream, mutable_buffer_sequence Buffers, class Condition, class Token>
decltype(auto) async_read(Stream& s, Buffers const& into, Condition condition, Token&& token) {
    return async_transfer<mutable_buffer, read_some>(s, into, std::move(condition),
                                                     std::forward<Token>(token));
}
template <class Stream, mutable_buffer_sequence Buffers, class Token>
decltype(auto) async_read(Stream& s, Buffers const& into, Token&& token) {
    return networking_ts::async_read(s, into, transfer_all(), std::forward<Token>(token));
}

}  // namespace networking_ts
