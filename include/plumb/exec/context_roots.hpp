// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/root_list.hpp>

namespace plumb {

/// The roots of a context, in a list of all contexts of the process, in which a debugger finds them.
/// Threads: as `root_list`; to make and destroy it, any. Allocates: never.
class context_roots : public root_list {
public:
    /// @param context  the name of its type
    explicit context_roots(char const* context, bool concurrent = false) noexcept;
    ~context_roots();

    [[nodiscard]] char const* context() const noexcept { return context_; }

private:
    static brief_lock lock_all;
    static context_roots* first_of_all;

    char const* context_;
    context_roots* previous_ = nullptr;
    context_roots* next_;
};

}  // namespace plumb
