// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace plumb::test {

/// A directory of the test's own, removed with all that is in it.
class temporary_directory {
public:
    temporary_directory();
    temporary_directory(temporary_directory const&) = delete;
    temporary_directory& operator=(temporary_directory const&) = delete;
    ~temporary_directory();

    [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
        return path_ / name;
    }
    /// How many files and directories are in it.
    [[nodiscard]] std::size_t entries() const;

private:
    std::filesystem::path path_;
};

/// All of a file, and a file of this content, by other means than plumb's.
[[nodiscard]] std::string content_of(std::filesystem::path const& file);
void make_file(std::filesystem::path const& file, std::string_view content);

}  // namespace plumb::test
