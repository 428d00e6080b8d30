// SPDX-License-Identifier: Apache-2.0
//
// A request of a protocol like HTTP, for streams of any kind and executors of any type: its interface.
#pragma once

#include <plumb/task/task.hpp>

#include <string>
#include <string_view>

namespace plumb {
class io_handle;
}

namespace http {

struct response {
    int status;
    std::string body;
};

plumb::task<response> get(plumb::io_handle& stream, std::string_view path);

}  // namespace http
