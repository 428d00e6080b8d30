// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/path_view.hpp>

namespace plumb {

path_view::zero_terminated::zero_terminated(path_view path) noexcept : text_("") {
    auto const bytes = path.bytes();
    if (bytes.find('\0') != std::string_view::npos) {
        text_ = error::zero_in_path;
    } else if (bytes.size() >= copy_.size()) {
        text_ = std::errc::filename_too_long;
    } else if (path.is_zero_terminated()) {
        text_ = bytes.data();
    } else {
        copy_[bytes.copy(copy_.data(), bytes.size())] = '\0';
        text_ = copy_.data();
    }
}

}  // namespace plumb
