// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffers.hpp>
#include <plumb/base/result.hpp>
#include <plumb/handle/native_handle.hpp>

#include <atomic>
#include <cstdint>

namespace plumb {

class io_multiplexer;
class io_operation;

/// What a multiplexer keeps of a handle that is registered with it, and owns.
struct handle_slot {
    struct functions {
        /// Cancels what is in flight, forgets the native handle and gives the slot back.
        void (*detach)(handle_slot&) noexcept;
        /// Whether it can be detached without loss; else `error::busy` or `error::parked_bytes`.
        result<void> (*quiet)(handle_slot&) noexcept;
        /// Before a read that doesn't go through the multiplexer: moves bytes that were received ahead, and receives
        /// no more ahead. @return their number, 0 at the end of the stream; minus the error, EAGAIN if there are none.
        std::int64_t (*take_received)(handle_slot&, buffers const&) noexcept;
    };

    functions const* table = nullptr;
    /// Null where there is none, or none any more.
    io_multiplexer* multiplexer = nullptr;
    /// What waits for the handle to be readable, and writable.
    io_operation* reader = nullptr;
    io_operation* writer = nullptr;
    native_handle native = no_native_handle;
    /// For what the system may be asked directly: what it is ready for, as far as is known.
    std::uint32_t ready = 0;
    handle_kind kind{};
    /// Of a file: how many reads go by that are not tried from memory first, and how many after the next miss.
    std::uint8_t misses = 0;
    std::uint8_t misses_next = 0;
    /// For what an operation that isn't ready only has to wait here; else the multiplexer is asked to start it.
    std::uint32_t watched = 0;
    /// Of a file, which has no waiting reader or writer: how many operations are in flight.
    std::uint32_t in_flight = 0;

    /// The slot of handles that have none, so that a start looks only for the multiplexer. Nobody writes to it.
    static handle_slot none;

    [[nodiscard]] bool only_waits(std::uint32_t what) const noexcept {
        return (ready & what) == 0 && (watched & what) != 0;
    }
};

/// Owns a native handle; the base of every kind of handle.
///
/// Move-only. Moving is allowed while operations are in flight: they are known to the multiplexer's slot and not to
/// this object. The native handle is close-on-exec. Closing cancels what is in flight.
/// A handle registers with a multiplexer at its first asynchronous use: with the one that was set, else with the
/// thread's own. From then on it is used on the multiplexer's thread.
/// Threads: one at a time. Allocates: never. Source: D2052R0 4.1, P1031.
class handle {
public:
    handle(handle const&) = delete;
    handle& operator=(handle const&) = delete;

    [[nodiscard]] bool is_open() const noexcept { return native_ != no_native_handle; }
    [[nodiscard]] handle_kind kind() const noexcept { return kind_; }
    /// @return the native handle, still owned here
    [[nodiscard]] native_handle native() const noexcept { return native_; }

    /// Closes it now; operations in flight complete with `operation_canceled`. Closing a closed handle does nothing.
    /// @return what close(2) gives; the handle is closed in any case
    result<void> close() noexcept;

    /// Gives the native handle away, deregistered.
    /// Errors: `busy` while operations are in flight, `parked_bytes` while received bytes wait to be read.
    [[nodiscard]] result<native_handle> release() noexcept;

    /// @return the multiplexer that it is registered with or was set, or null
    [[nodiscard]] io_multiplexer* multiplexer() const noexcept {
        handle_slot const* const s = slot();
        return s != nullptr ? s->multiplexer : multiplexer_;
    }

    /// Chooses the multiplexer; only before the first asynchronous use.
    void set_multiplexer(io_multiplexer& m) noexcept;

protected:
    constexpr explicit handle(handle_kind kind) noexcept : kind_(kind) {}
    constexpr handle(handle_kind kind, native_handle native) noexcept
        : native_(native), kind_(kind) {}
    handle(handle&& other) noexcept;
    handle& operator=(handle&& other) noexcept;
    ~handle() {
        if (is_open()) {
            (void)close();
        }
    }

    /// Moves bytes that the multiplexer received ahead of a read. @return as `handle_slot::functions::take_received`
    std::int64_t take_received(buffers const& to) noexcept;

private:
    friend class io_backend;
    friend class io_operation;

    void detach() noexcept;
    /// Null unless it is registered.
    [[nodiscard]] handle_slot* slot() const noexcept {
        handle_slot* const s = slot_.load(std::memory_order_acquire);
        return s != &handle_slot::none ? s : nullptr;
    }
    handle_slot* take_slot() noexcept {
        handle_slot* const s = slot_.load(std::memory_order_relaxed);
        slot_.store(&handle_slot::none, std::memory_order_relaxed);
        return s;
    }

    native_handle native_ = no_native_handle;
    // Threads that share the handle may start operations while the one that drives registers it.
    std::atomic<handle_slot*> slot_{&handle_slot::none};
    io_multiplexer* multiplexer_ = nullptr;
    handle_kind kind_;
};

}  // namespace plumb
