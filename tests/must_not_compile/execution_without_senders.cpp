// SPDX-License-Identifier: Apache-2.0
// Where there are no senders the header says so.
// expect: plumb/task/execution.hpp needs std::execution: a library that has it, or stdexec among the includes
#include <plumb/task/execution.hpp>
