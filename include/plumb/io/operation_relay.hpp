// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/owned_work.hpp>
#include <plumb/io/io_operation.hpp>

#include <atomic>
#include <cstdint>

namespace plumb {

/// Carries the start and the cancellation of one operation to the thread that drives its multiplexer.
///
/// State: bits. `requested` from the start to `reset`; `on_its_way` while the multiplexer's inbox has the node;
/// `cancelled` once that was asked for; `met_end` once the operation is over; `told_end` once its receiver is told. An
/// end that meets the node on its way is delivered when it has arrived, so that nothing refers to the operation once
/// its receiver knows.
/// Threads: `start`, `cancel`, `started` and `ended` any; the rest only the one that drives. Allocates: never.
class operation_relay : private owned_work {
public:
    operation_relay() noexcept : owned_work(&operation_relay::arrive) {}
    /// Of one that isn't started.
    operation_relay(operation_relay&& idle) noexcept;
    operation_relay& operator=(operation_relay&&) = delete;
    /// Ends what is on its way. Only by the thread that drives, unless nothing is in flight.
    ~operation_relay();

    /// Starts the operation, which stays where it is from now on: here if this thread is inside the multiplexer, else
    /// by a request to the thread that drives.
    io_status start(io_operation& op) noexcept;

    /// Asks for an early end of what was started and has not ended.
    void cancel() noexcept;

    [[nodiscard]] bool started() const noexcept { return (state_.load() & requested) != 0; }
    [[nodiscard]] bool ended() const noexcept { return (state_.load() & told_end) != 0; }

    /// Starts what is on its way to this thread.
    void fetch() noexcept;

    /// The operation is over. @return false where that is to be delivered later
    [[nodiscard]] bool end() noexcept;

    void reset() noexcept;

private:
    static constexpr std::uint8_t requested = 1;
    static constexpr std::uint8_t on_its_way = 2;
    static constexpr std::uint8_t cancelled = 4;
    static constexpr std::uint8_t met_end = 8;
    static constexpr std::uint8_t told_end = 16;

    static void arrive(owned_work& self, fate f) noexcept;

    std::atomic<std::uint8_t> state_{0};
    bool begun_ = false;
    io_operation* operation_ = nullptr;      // once requested
    io_multiplexer* multiplexer_ = nullptr;  // the same
};

}  // namespace plumb
