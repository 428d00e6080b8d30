// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/wait_kind.hpp>
#include <plumb/task/suspension.hpp>

#include <bit>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <source_location>

namespace plumb {

/// What is known of a coroutine from outside: where in the source it awaits, what, and who awaits it. Part of every
/// promise; reports and debuggers walk from one to the next, up by `awaiter` and down by `awaited` and `waits_in`.
///
/// An await stores one word here, one of a task a second, and its end clears that. The word has the location, whose lowest
/// bits are free, and there the `wait_kind`.
/// Threads: the coroutine's executor. Allocates: never.
class async_frame {
public:
    async_frame(async_frame const&) = delete;
    async_frame& operator=(async_frame const&) = delete;

    /// Whether it is a part of plumb that stacks don't show, such as the root of `async_run`, or hasn't begun.
    [[nodiscard]] bool hidden() const noexcept { return site_ == 0; }
    /// Where it awaits, or awaited last; before its first await, where it begins.
    [[nodiscard]] std::source_location location() const noexcept {
        return std::bit_cast<std::source_location>(site_ & ~kind_bits);
    }
    /// What it waits for there, as far as the awaitable says.
    [[nodiscard]] wait_kind kind() const noexcept {
        return static_cast<wait_kind>(site_ & kind_bits);
    }
    /// The coroutine that awaits it; null where none of plumb's does.
    [[nodiscard]] async_frame* awaiter() const noexcept { return awaiter_; }
    /// The coroutine that it awaits, where it is one.
    [[nodiscard]] async_frame const* awaited() const noexcept {
        return (link_ & in_suspension) == 0 ? reinterpret_cast<async_frame const*>(link_) : nullptr;
    }
    /// What else it awaits that tells of itself, or null.
    [[nodiscard]] suspension const* waits_in() const noexcept {
        return (link_ & in_suspension) != 0
                   ? reinterpret_cast<suspension const*>(link_ & ~in_suspension)
                   : nullptr;
    }

    void begins_at(std::source_location where) noexcept {
        site_ = std::bit_cast<std::uintptr_t>(where);
    }
    void awaits_at(std::source_location where, wait_kind kind) noexcept {
        site_ = std::bit_cast<std::uintptr_t>(where) + static_cast<std::uintptr_t>(kind);
    }
    void awaited_by(async_frame* awaiter) noexcept { awaiter_ = awaiter; }
    /// Until `goes_on`: it is suspended in this.
    void awaits(async_frame const& awaited) noexcept {
        link_ = reinterpret_cast<std::uintptr_t>(&awaited);
    }
    void awaits(suspension const& s) noexcept {
        link_ = reinterpret_cast<std::uintptr_t>(&s) | in_suspension;
    }
    void goes_on() noexcept { link_ = 0; }

protected:
    async_frame() noexcept = default;
    ~async_frame() = default;

private:
    static_assert(sizeof(std::source_location) == sizeof(std::uintptr_t) &&
                  alignof(std::source_location) == alignof(std::uintptr_t));
    static constexpr std::uintptr_t kind_bits = 7;
    static constexpr std::uintptr_t in_suspension = 1;

    std::uintptr_t site_ = 0;
    async_frame* awaiter_ = nullptr;
    std::uintptr_t link_ = 0;
};

/// The coroutine that awaits, as an awaitable is handed it: any handle, and the frame where it is one of plumb's.
class awaiting {
public:
    awaiting() noexcept = default;
    template <class Promise>
    awaiting(std::coroutine_handle<Promise> h) noexcept : handle_(h) {
        if constexpr (std::derived_from<Promise, async_frame>) {
            frame_ = &h.promise();
        }
    }

    [[nodiscard]] operator std::coroutine_handle<>() const noexcept { return handle_; }
    /// Null where it is none of plumb's, or where that isn't known.
    [[nodiscard]] async_frame* frame() const noexcept { return frame_; }

    /// Until `goes_on`: it is suspended in this.
    template <class Awaited>
    void awaits(Awaited const& awaited) const noexcept {
        if (frame_ != nullptr) {
            frame_->awaits(awaited);
        }
    }
    void goes_on() const noexcept {
        if (frame_ != nullptr) {
            frame_->goes_on();
        }
    }

private:
    std::coroutine_handle<> handle_;
    async_frame* frame_ = nullptr;
};

}  // namespace plumb
