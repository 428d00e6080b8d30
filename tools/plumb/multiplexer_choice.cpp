// SPDX-License-Identifier: Apache-2.0
#include "multiplexer_choice.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <system_error>
#include <utility>

using namespace plumb;

std::unique_ptr<io_multiplexer> make_multiplexer(std::optional<multiplexer_kind> kind) {
    auto made = kind ? io_multiplexer::make(*kind) : io_multiplexer::best_available(1);
    if (!made) {
        char const* const forced = std::getenv("PLUMB_MULTIPLEXER");
        std::string const what = kind ? fmt::format("cannot use {}", to_string(*kind))
                                 : forced != nullptr
                                     ? fmt::format("cannot use PLUMB_MULTIPLEXER={}", forced)
                                     : std::string("cannot use any multiplexer");
        throw std::system_error(made.error(), what);
    }
    return std::move(*made);
}
