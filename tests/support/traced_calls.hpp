// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plumb::test {

/// Runs `body` in a child process, whose system calls are traced.
/// @param body  calls its argument to divide the calls that it makes; a check of the test that fails in it fails the
///              test. It must not start threads.
/// @return the names of the calls between each two divisions, such as "epoll_wait read"; none where the system lets no
///         process be traced
std::vector<std::string>
traced_calls(std::function<void(std::function<void()> const& divide)> const& body);

}  // namespace plumb::test
