// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/io/io_operation.hpp>

#include <atomic>
#include <coroutine>
#include <cstdint>

namespace plumb {

/// What an await needs besides its operation where the multiplexer is for several threads: carries the operation to
/// the thread that drives, a stop request after it, and the end home to the executor of the coroutine.
///
/// One node does all of it and is in at most one queue. State: bits. `away` while the multiplexer's inbox has the node,
/// or is about to; `stopped` once a stop was requested; `over` once the operation has ended.
///
///   1. away            -> none            the node arrives: the driver starts the operation, unless it is stopped
///   2. none            -> away | stopped  the stop sends the node again
///   3. away | stopped  -> stopped         the node arrives: the driver cancels the operation
///   4. none            -> over            the operation ends, and the node goes home
///   5. away            -> away | over     the operation ends, and the node goes home when it has arrived
///
/// At home it leaves the stop source, for that is where its callbacks run, and resumes the coroutine.
/// Threads: `start` the coroutine's; `withdraw` the one that drives. Allocates: itself, from the pool.
class io_errand : private owned_work, private stop_callback_node {
public:
    io_errand(io_errand const&) = delete;
    io_errand& operator=(io_errand const&) = delete;

    /// Starts an operation that knows its coroutine and environment. By the time that this returns the coroutine may
    /// have been resumed, unless it completed at once.
    static io_status start(io_operation& op) noexcept;

    /// Whether the operation was started so, and has not come home.
    [[nodiscard]] static bool carries(io_operation const& op) noexcept {
        return op.state_.told && op.deliver_ == &io_errand::on_end;
    }
    /// Before such an operation goes: tells nobody of it.
    static void withdraw(io_operation& op) noexcept;
    /// Before its multiplexer goes, for an operation that has begun and not ended: the coroutine stays suspended.
    static void forget(io_operation& op) noexcept { of(op).destroy(); }

private:
    io_errand(io_operation& op, io_multiplexer& m) noexcept
        : owned_work(&io_errand::end),
          stop_callback_node(&io_errand::on_stop),
          operation_(op),
          multiplexer_(m),
          waiting_(op.waiting()) {}
    ~io_errand() = default;

    static constexpr std::uint8_t away = 1;
    static constexpr std::uint8_t stopped = 2;
    static constexpr std::uint8_t over = 4;

    static io_errand& of(io_operation const& op) noexcept {
        return *static_cast<io_errand*>(op.waiting_);
    }
    static void end(owned_work& node, fate f) noexcept;
    static void on_stop(stop_callback_link& node) noexcept;
    static void on_end(io_operation& op) noexcept;
    void arrive() noexcept;
    void go_home() noexcept;
    void destroy() noexcept;

    std::atomic<std::uint8_t> state_{away};
    // Of the driver.
    bool begun_ = false;
    bool withdrawn_ = false;
    bool goes_home_ = false;
    io_operation& operation_;
    io_multiplexer& multiplexer_;
    std::coroutine_handle<> const waiting_;
};

}  // namespace plumb
