// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>

namespace plumb {

class promise_base;

/// Is told of the end of a coroutine in place of its continuation, and says who is resumed: takes control home from
/// another executor, or waits for others to end too.
/// Threads: called on the executor of the coroutine that ends.
class end_hook {
public:
    /// @param failed  whether the coroutine ended with an exception
    /// @return what to resume; never null. The frame of `ended` may be gone when it is resumed
    std::coroutine_handle<> operator()(promise_base& ended, bool failed) noexcept {
        return on_end_(*this, ended, failed);
    }

protected:
    using function = std::coroutine_handle<> (*)(end_hook&, promise_base& ended,
                                                 bool failed) noexcept;

    constexpr explicit end_hook(function on_end) noexcept : on_end_(on_end) {}
    ~end_hook() = default;

private:
    function on_end_;
};

}  // namespace plumb
