// SPDX-License-Identifier: Apache-2.0
// Paths of any bytes: their parts are a division, and the system gets exactly them, or there is an error.
#include <plumb/base/path_view.hpp>

#include <plumb/base/error.hpp>

#include "input.hpp"

#include <string>

using plumb::path_view;
using plumb::fuzz::check;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    for (path_view const path : {path_view(text), path_view(std::string_view(text))}) {
        std::string const parent(path.parent().bytes());
        std::string const leaf(path.leaf().bytes());
        check(parent + leaf == text, "parent and leaf are the path");
        check(leaf.find('/') == std::string::npos, "a leaf has no slash");
        check(parent.empty() || parent.ends_with('/'), "a parent ends with its slash");
        check(path.leaf().leaf() == path.leaf(), "a leaf is its own leaf");
        check(path.empty() == text.empty(), "it is as empty as its bytes");

        path_view::zero_terminated const given(path);
        auto const native = given.get();
        if (text.find('\0') != std::string::npos) {
            check(!native && native.error() == plumb::error::zero_in_path, "a zero is an error");
        } else if (text.size() >= 4096) {
            check(!native && native.error() == std::errc::filename_too_long,
                  "what is too long is an error");
        } else {
            check(native && text == *native, "the system gets the bytes");
        }
    }
    return 0;
}
