// SPDX-License-Identifier: Apache-2.0
#include "http.hpp"

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>

#include <charconv>

namespace http {
namespace {

plumb::task<> write_all(plumb::io_handle& stream, std::string_view text) {
    plumb::const_buffer rest(text.data(), text.size());
    while (!rest.empty()) {
        rest += (co_await stream.co_write(rest)).value().bytes();
    }
}

/// Appends at least one byte.
plumb::task<> read_more(plumb::io_handle& stream, std::string& into) {
    char room[1024];
    auto const got = co_await stream.co_read(plumb::buffer(room));
    if (got.value().bytes() == 0) {
        throw std::system_error(std::make_error_code(std::errc::connection_aborted));
    }
    into.append(room, got.value().bytes());
}

}  // namespace

plumb::task<response> get(plumb::io_handle& stream, std::string_view path) {
    co_await write_all(stream, "GET " + std::string(path) + " HTTP/1.1\r\nHost: here\r\n\r\n");
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
