// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb {

/// What a coroutine is suspended in that is neither one other coroutine nor i/o. Says what derives from it.
class alignas(void*) suspension {  // the lowest bit of its address is free
public:
    enum class form : std::uint8_t {
        primitive,  // `waiter`: in a `wait_list`
        tasks,      // `children`: awaits several at once
        scope,      // `task_scope`: the body and what was spawned
        elsewhere,  // awaits one that runs on another executor
    };

    [[nodiscard]] form is() const noexcept { return form_; }

protected:
    constexpr explicit suspension(form f) noexcept : form_(f) {}
    ~suspension() = default;

private:
    form form_;
};

}  // namespace plumb
