// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/work.hpp>

#include <atomic>

namespace plumb {

/// Work that may be posted from a signal handler: posting it again before it runs is a no-op.
/// It must outlive the handler and the multiplexer that it was posted to.
class signal_work : private work {
public:
    using function = void (*)(signal_work&) noexcept;

    constexpr explicit signal_work(function run) noexcept
        : work(&signal_work::run_once), run_(run) {}

private:
    friend class io_multiplexer;

    static void run_once(work& self) noexcept {
        auto& item = static_cast<signal_work&>(self);
        item.posted_.store(
            false);  // before it runs, so that a signal that arrives meanwhile is not lost
        item.run_(item);
    }

    function run_;
    std::atomic<bool> posted_{false};
};

}  // namespace plumb
