// SPDX-License-Identifier: Apache-2.0
#pragma once

class echo_server;

/// Makes the first SIGINT or SIGTERM stop a server; the second ends the process at once.
///
/// While it lives the two are blocked, also in threads that start then, but for the time between
/// `deliver_to` and `block` in the thread that calls these: a signal from before is delivered then.
/// One at a time.
class stop_signals {
public:
    stop_signals() noexcept { block(); }
    stop_signals(stop_signals const&) = delete;
    stop_signals& operator=(stop_signals const&) = delete;

    void deliver_to(echo_server& server) noexcept;
    void block() noexcept;
};
