// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/work.hpp>

namespace plumb {

/// Work that the queue owns: it is either run or dropped, once, and frees itself in both.
class owned_work : public work {
public:
    enum class fate : bool { dropped, run };
    /// Ends the item: frees it, and does its work where its fate is to run.
    using end_function = void (*)(owned_work&, fate) noexcept;

    /// Frees `item` without running it, if it is owned; else it belongs to somebody who knows.
    static void drop(work& item) noexcept {
        if (item.runs(&owned_work::run)) {
            auto& owned = static_cast<owned_work&>(item);
            owned.end_(owned, fate::dropped);
        }
    }

protected:
    explicit owned_work(end_function end) noexcept : work(&owned_work::run), end_(end) {}

private:
    static void run(work& item) noexcept {
        auto& owned = static_cast<owned_work&>(item);
        owned.end_(owned, fate::run);
    }

    end_function end_;
};

}  // namespace plumb
