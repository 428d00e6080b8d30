// SPDX-License-Identifier: Apache-2.0
//
// Coroutines whose frames come from the pool.
#include "../coroutines.hpp"

namespace {

// Of this unit alone, so that the compiler knows all that is done with it.
class object : public coroutine_object {};

}  // namespace

int main(int argc, char** argv) { return run_coroutines<object>(argc, argv); }
