// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plumb {

/// Prints `message` and ends the process: the caller has broken a contract.
[[noreturn]] void caller_bug(char const* message) noexcept;

/// Ends the process, in every build, unless `kept`.
/// @param message  says what the caller did and what to do instead
constexpr void require(bool kept, char const* message) noexcept {
    if (!kept) [[unlikely]] {
        caller_bug(message);
    }
}

}  // namespace plumb

#define PLUMB_ASSERT_TEXT(line) #line
#define PLUMB_ASSERT_LINE(line) PLUMB_ASSERT_TEXT(line)

/// An invariant of plumb itself. In release the expression compiles all the same, but is not
/// evaluated. Never for the outcome of i/o.
#ifdef NDEBUG
#define PLUMB_ASSERT(expression) static_cast<void>(sizeof(static_cast<bool>(expression)))
#else
#define PLUMB_ASSERT(expression)                                                                   \
    ::plumb::require(static_cast<bool>(expression),                                                \
                     __FILE__ ":" PLUMB_ASSERT_LINE(__LINE__) ": broken invariant: " #expression)
#endif
