// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/zero_copy_operation.hpp>

#include "platform/linux/ring_slot.hpp"

#include <cstdint>
#include <memory>
#include <new>

namespace plumb::platform {

/// The zero-copy writes that a ring has: numbers that name them in completions. A write is here from its request to the
/// kernel's last word on it, which may come after its operation, and its handle, are gone.
/// Allocates: once, at the first write.
class held_writes {
public:
    static constexpr std::uint16_t most = 256;

    struct write {
        zero_copy_operation* operation =
            nullptr;                // while the kernel holds its buffer beyond its end
        ring_slot* slot = nullptr;  // before that
        std::uint16_t next_free = 0;
    };

    /// @return whether there is room for another; then it has the number `next`
    [[nodiscard]] bool has_room() noexcept {
        if (writes_ == nullptr) {
            writes_.reset(new (std::nothrow) write[most]);
            if (writes_ == nullptr) {
                return false;
            }
            for (std::uint16_t i = 0; i < most; ++i) {
                writes_[i].next_free = static_cast<std::uint16_t>(i + 1);
            }
        }
        return free_ != most;
    }

    std::uint16_t take(ring_slot& s) noexcept {
        std::uint16_t const number = free_;
        free_ = writes_[number].next_free;
        writes_[number].slot = &s;
        ++count_;
        return number;
    }

    void give_back(std::uint16_t number) noexcept {
        writes_[number] = {.next_free = free_};
        free_ = number;
        --count_;
    }

    [[nodiscard]] write& operator[](std::uint16_t number) noexcept { return writes_[number]; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

    template <class F>
    void for_each_held(F visit) noexcept {
        for (std::uint16_t i = 0; !empty() && i < most; ++i) {
            if (writes_[i].operation != nullptr) {
                visit(*writes_[i].operation);
            }
        }
    }

private:
    std::unique_ptr<write[]> writes_;
    std::uint16_t free_ = 0;
    std::uint16_t count_ = 0;
};

}  // namespace plumb::platform
