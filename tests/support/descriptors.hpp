// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <sys/resource.h>

namespace plumb::test {

/// How many descriptors this process has open.
[[nodiscard]] std::size_t open_descriptors();

/// While it lives, no descriptor can be opened.
class full_descriptor_table {
public:
    full_descriptor_table();
    full_descriptor_table(full_descriptor_table const&) = delete;
    full_descriptor_table& operator=(full_descriptor_table const&) = delete;
    ~full_descriptor_table();

private:
    rlimit before_;
};

}  // namespace plumb::test
