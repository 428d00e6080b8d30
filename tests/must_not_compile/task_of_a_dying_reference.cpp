// SPDX-License-Identifier: Apache-2.0
// The temporary is gone before anybody sees the reference.
// expect: no matching member function for call to 'return_value'
// expect: no matching function for call to
#include <plumb/task/task.hpp>

#include <string>

plumb::task<std::string const&> name() { co_return std::string("gone"); }
