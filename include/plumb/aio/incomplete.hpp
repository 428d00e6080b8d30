// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <system_error>

namespace plumb::aio {

/// A read or write that ended before everything was moved: because of the end of the stream
/// (`plumb::error::end_of_stream`), a deadline, a cancellation or another error; tells how much was moved.
class incomplete : public std::system_error {
public:
    incomplete(std::error_code why, char const* what, std::size_t moved, std::size_t wanted)
        : std::system_error(why, what), moved_(moved), wanted_(wanted) {}

    [[nodiscard]] std::size_t bytes_transferred() const noexcept { return moved_; }
    /// 0 where it was not known in advance.
    [[nodiscard]] std::size_t bytes_wanted() const noexcept { return wanted_; }

private:
    std::size_t moved_;
    std::size_t wanted_;
};

}  // namespace plumb::aio
