// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb::test {

/// Makes the kernel refuse a system call for the rest of this process, as a sandbox does: for children
/// of a test only.
/// @param number     such as SYS_io_uring_setup
/// @param error      what it fails with, such as EPERM
/// @param last_flag  where not 0: only calls whose sixth argument has this bit
void refuse_system_call(long number, int error, std::uint32_t last_flag = 0);

}  // namespace plumb::test
