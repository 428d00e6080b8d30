// SPDX-License-Identifier: Apache-2.0
//
// A request of a protocol like HTTP, for streams of any kind and executors of any type: a template, as asio's own composed
// operations are.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <charconv>
#include <string>
#include <string_view>

namespace http {

namespace asio = boost::asio;

struct response {
    int status;
    std::string body;
};

/// Appends at least one byte.
template <class Stream>
asio::awaitable<void, typename Stream::executor_type> read_more(Stream& stream, std::string& into) {
    constexpr asio::use_awaitable_t<typename Stream::executor_type> awaited;
    char room[1024];
    auto const size = co_await stream.async_read_some(asio::buffer(room), awaited);
    into.append(room, size);
}

template <class Stream>
asio::awaitable<response, typename Stream::executor_type> get(Stream& stream,
                                                              std::string_view path) {
    constexpr asio::use_awaitable_t<typename Stream::executor_type> awaited;
    auto const request = "GET " + std::string(path) + " HTTP/1.1\r\nHost: here\r\n\r\n";
    co_await asio::async_write(stream, asio::buffer(request), awaited);
    std::string text;
    std::size_t head;
    while ((head = text.find("\r\n\r\n")) == std::string::npos) {
        co_await read_more(stream, text);
    }
    response got{0, {}};
    std::from_chars(text.data() + 9, text.data() + head, got.status);
    std::size_t length = 0;
    if (auto const at = text.find("Content-Length: "); at < head) {
        std::from_chars(text.data() + at + 16, text.data() + head, length);
    }
    got.body = text.substr(head + 4);
    while (got.body.size() < length) {
        co_await read_more(stream, got.body);
    }
    co_return got;
}

}  // namespace http
