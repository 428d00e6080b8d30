// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/error.hpp>

namespace networking_ts {

/// What the TS adds to the errors of the system: plumb has names for it.
struct stream_errc {
    /// The stream has ended.
    static constexpr plumb::error eof = plumb::error::end_of_stream;
    /// The dynamic buffer is full, and what was looked for isn't in it.
    static constexpr plumb::error not_found = plumb::error::limit_exceeded;
};

}  // namespace networking_ts
