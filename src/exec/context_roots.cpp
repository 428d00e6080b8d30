// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/context_roots.hpp>

#include <mutex>

namespace plumb {

constinit brief_lock context_roots::lock_all;
constinit context_roots* context_roots::first_of_all = nullptr;

context_roots::context_roots(char const* context, bool concurrent) noexcept
    : root_list(concurrent), context_(context) {
    std::scoped_lock const locked(lock_all);
    next_ = first_of_all;
    if (next_ != nullptr) {
        next_->previous_ = this;
    }
    first_of_all = this;
}

context_roots::~context_roots() {
    std::scoped_lock const locked(lock_all);
    (previous_ != nullptr ? previous_->next_ : first_of_all) = next_;
    if (next_ != nullptr) {
        next_->previous_ = previous_;
    }
}

}  // namespace plumb
