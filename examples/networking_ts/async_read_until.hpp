// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_result.hpp"
#include "networking_ts/buffer.hpp"
#include "networking_ts/stream_errc.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace networking_ts {

/// Reads into a dynamic buffer until it holds the delimiter.
template <class Stream, class DynamicBuffer, class Handler>
class read_until {
public:
    read_until(Stream& s, DynamicBuffer bytes, std::string delimiter, Handler handler)
        : stream_(&s),
          bytes_(std::move(bytes)),
          delimiter_(std::move(delimiter)),
          handler_(std::move(handler)) {}

    void start() { search(); }

    [[nodiscard]] Handler const& next() const noexcept { return handler_; }

    void operator()(std::error_code error, std::size_t bytes) {
        bytes_.commit(bytes);
        if (error) {
            handler_(error, 0);
        } else if (over_) {
            handler_(result_, found_);
        } else {
            search();
        }
    }

private:
    static constexpr std::size_t at_a_time = 512;

    /// Always ends in a read, if need be of nothing: so the handler is never called from the initiating function.
    void search() {
        const_buffer const here = bytes_.data();
        std::string_view const text(reinterpret_cast<char const*>(here.data()), here.size());
        auto const place = text.find(delimiter_, searched_);
        std::size_t room = 0;
        if (place != std::string_view::npos) {
            over_ = true;
            found_ = place + delimiter_.size();
        } else if (text.size() >= bytes_.max_size()) {
            over_ = true;
            result_ = make_error_code(stream_errc::not_found);
        } else {
            // A part of the delimiter may be there already.
            searched_ = text.size() - std::min(text.size(), delimiter_.size());
            room = std::min(std::max(at_a_time, bytes_.capacity() - text.size()),
                            bytes_.max_size() - text.size());
        }
        Stream& s = *stream_;
        mutable_buffer const into = bytes_.prepare(room);
        s.async_read_some(into, std::move(*this));
    }

    Stream* stream_;
    DynamicBuffer bytes_;
    std::string delimiter_;
    std::size_t searched_ = 0;
    bool over_ = false;
    std::size_t found_ = 0;
    std::error_code result_;
    Handler handler_;
};

/// Reads until `bytes` holds `delimiter`; it may then hold more.
/// Handler: `void(std::error_code, std::size_t)`, with the number of bytes up to the delimiter's end.
/// Errors: `stream_errc::not_found` where the buffer may not become large enough.
template <class Stream, class DynamicBuffer, class Token>
decltype(auto) async_read_until(Stream& s, DynamicBuffer bytes, std::string_view delimiter,
                                Token&& token) {
    return async_initiate<void(std::error_code, std::size_t)>(
        [](auto handler, Stream* stream, DynamicBuffer into, std::string until) {
            read_until<Stream, DynamicBuffer, decltype(handler)>(
                *stream, std::move(into), std::move(until), std::move(handler))
                .start();
        },
        std::forward<Token>(token), &s, std::move(bytes), std::string(delimiter));
}
template <class Stream, class DynamicBuffer, class Token>
decltype(auto) async_read_until(Stream& s, DynamicBuffer bytes, char delimiter, Token&& token) {
    return networking_ts::async_read_until(s, std::move(bytes), std::string_view(&delimiter, 1),
                                           std::forward<Token>(token));
}

}  // namespace networking_ts
