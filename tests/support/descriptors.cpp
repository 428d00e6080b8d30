// SPDX-License-Identifier: Apache-2.0
#include "support/descriptors.hpp"

#include <filesystem>
#include <iterator>
#include <stdexcept>

namespace plumb::test {

std::size_t open_descriptors() {
    // The iterator itself has one open.
    return static_cast<std::size_t>(
               std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {})) -
           1;
}

full_descriptor_table::full_descriptor_table() {
    // A limit below what is open refuses every new descriptor and closes none.
    if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) {
        throw std::runtime_error("the limit of descriptors can't be read");
    }
    rlimit none = before_;
    none.rlim_cur = 3;  // poll(2) refuses more entries than the limit allows
    if (::setrlimit(RLIMIT_NOFILE, &none) != 0) {
        throw std::runtime_error("the limit of descriptors can't be set");
    }
}

full_descriptor_table::~full_descriptor_table() { ::setrlimit(RLIMIT_NOFILE, &before_); }

}  // namespace plumb::test
