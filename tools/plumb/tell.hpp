// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <utility>

/// Writes to stderr. That it can't be written to is no reason to fail, nor to stop.
template <class... T>
void tell(fmt::format_string<T...> text, T&&... values) {
    (void)std::fputs(fmt::format(text, std::forward<T>(values)...).c_str(), stderr);
}
