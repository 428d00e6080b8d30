// SPDX-License-Identifier: Apache-2.0
#include "support/temporary_directory.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <stdlib.h>

namespace plumb::test {

temporary_directory::temporary_directory() {
    auto name = (std::filesystem::temp_directory_path() / "plumb-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("no directory can be made in " + name);
    }
    path_ = name;
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::size_t temporary_directory::entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
}

std::string content_of(std::filesystem::path const& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void make_file(std::filesystem::path const& file, std::string_view content) {
    std::ofstream(file, std::ios::binary) << content;
}

}  // namespace plumb::test
