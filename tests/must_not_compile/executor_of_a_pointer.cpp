// SPDX-License-Identifier: Apache-2.0
// A pointer is no executor: it has nothing to dispatch with.
// expect: no matching
// expect: no viable
// expect: could not convert
#include <plumb/exec/executor_ref.hpp>
#include <plumb/io/io_context.hpp>

plumb::executor_ref f(plumb::io_context& context) { return &context; }
