// SPDX-License-Identifier: Apache-2.0
//
// One of ten that use the request; UNIT is its number.
#include "http.hpp"

#include <boost/asio/ip/tcp.hpp>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define NAME_OF(number) unit##number
#define NAME(number) NAME_OF(number)

boost::asio::awaitable<std::size_t> NAME(UNIT)(boost::asio::ip::tcp::socket& stream) {
    auto const got = co_await http::get(stream, "/" TEXT(UNIT));
    co_return got.status == 200 ? got.body.size() : 0;
}
