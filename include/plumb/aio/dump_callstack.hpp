// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/task/dump_callstack.hpp>

namespace plumb::aio {

using plumb::dump_callstack;

}  // namespace plumb::aio
