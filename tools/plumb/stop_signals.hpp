// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Makes the first SIGINT or SIGTERM stop something; the second ends the process at once.
///
/// While it lives the two are blocked, also in threads that start then, but for the time between
/// `deliver_to` and `block` in the thread that calls these: a signal from before is delivered then.
/// One at a time.
class stop_signals {
public:
    stop_signals() noexcept { block(); }
    stop_signals(stop_signals const&) = delete;
    stop_signals& operator=(stop_signals const&) = delete;

    /// Calls `stop(what)` in the signal's handler.
    void deliver_to(void (*stop)(void* what) noexcept, void* what) noexcept;
    /// Calls `target.request_stop()` there.
    template <class T>
    void deliver_to(T& target) noexcept {
        deliver_to([](void* what) noexcept { static_cast<T*>(what)->request_stop(); }, &target);
    }
    void block() noexcept;
    /// The first signal that came; 0 if none has.
    [[nodiscard]] int number() const noexcept;
};
