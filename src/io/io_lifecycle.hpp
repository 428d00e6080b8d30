// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation.hpp>

#include "io/io_backend.hpp"
#include "io/this_thread.hpp"

// The steps that every operation goes through, inline in the files that take them: between them they cost less than
// the calls would.
namespace plumb {

inline bool io_multiplexer::driven_here() const noexcept {
    return driver_.load(std::memory_order_relaxed) == this_thread_token();
}

inline void io_multiplexer::check_driver() noexcept {
    if (!driven_here()) [[unlikely]] {
        take_over();
    }
}

/// `A` is the action where it is known; `accept` stands for all that have no case here.
template <io_operation::action A>
[[gnu::always_inline]] inline std::int64_t io_multiplexer::try_now(io_operation& op,
                                                                   handle_slot& s) noexcept {
    using action = io_operation::action;
    if constexpr (A == action::write) {
        const_buffers const& b = op.request_.write;
        auto const done =
            b.empty() ? 0
                      : platform::os().write(s.native, s.kind, b.native_array(), b.native_count());
        if (done == platform::failed_with(std::errc::resource_unavailable_try_again)) [[unlikely]] {
            s.ready &= ~static_cast<std::uint32_t>(platform::writable);
        }
        return done;
    } else if constexpr (A == action::read) {
        buffers const& b = op.request_.read;
        auto const done =
            b.empty() ? 0
                      : platform::os().read(s.native, s.kind, b.native_array(), b.native_count());
        note_read(s, done, b.bytes(), b.native_count());
        return done;
    } else if constexpr (A == action::read_pooled) {
        return try_pooled(op);
    } else if constexpr (A == action::barrier) {
        return 0;  // what has no place to store bytes keeps them in order
    } else {
        return backend_->otherwise(op);
    }
}

[[gnu::always_inline]] inline std::int64_t io_multiplexer::try_now(io_operation& op) noexcept {
    using action = io_operation::action;
    switch (op.state_.what) {
    case action::read:
        return try_now<action::read>(op, *op.slot_);
    case action::read_pooled:
        return try_now<action::read_pooled>(op, *op.slot_);
    case action::write:
        return try_now<action::write>(op, *op.slot_);
    default:
        return try_now<action::accept>(op, *op.slot_);
    }
}

/// Readiness after a read: gone after EAGAIN, and after a short read where that proves that nothing is left.
inline void io_multiplexer::note_read(handle_slot& s, std::int64_t done, std::size_t wanted,
                                      std::size_t count) noexcept {
    bool nothing_left = false;
    if (done > 0) [[likely]] {
        nothing_left = static_cast<std::size_t>(done) < wanted &&
                       (s.ready & platform::inconclusive) == 0 && count <= platform::most_buffers;
    } else {
        nothing_left = done == platform::failed_with(std::errc::resource_unavailable_try_again);
    }
    if (nothing_left) {
        s.ready &= ~static_cast<std::uint32_t>(platform::readable);
    }
}

template <io_operation::action A>
[[gnu::always_inline]] inline std::int64_t io_multiplexer::start_io(io_operation& op,
                                                                    handle_slot& s) noexcept {
    constexpr auto again = platform::failed_with(std::errc::resource_unavailable_try_again);
    if constexpr (A == io_operation::action::barrier) {
        return is_seekable(s.kind) ? backend_->start(op) : try_now<A>(op, s);
    }
    bool const reading = A == io_operation::action::accept ? reads(op.state_.what) : reads(A);
    io_operation*& waiting = reading ? s.reader : s.writer;
    if (waiting != nullptr) [[unlikely]] {
        return platform::failed_with(std::errc::device_or_resource_busy);
    }
    if ((s.ready & (reading ? platform::readable : platform::writable)) != 0) {
        if (auto const done = try_now<A>(op, s); done != again) {
            return done;
        }
    }
    if constexpr (A == io_operation::action::read || A == io_operation::action::read_pooled) {
        if (op.request_.read.empty()) [[unlikely]] {
            return 0;
        }
    } else if constexpr (A == io_operation::action::write) {
        if (op.request_.write.empty()) [[unlikely]] {
            return 0;
        }
    }
    if ((s.watched & (reading ? platform::readable : platform::writable)) == 0) {
        return backend_->start(op);
    }
    waiting = &op;
    return again;
}

inline std::int64_t io_multiplexer::start_io(io_operation& op) noexcept {
    using action = io_operation::action;
    switch (op.state_.what) {
    case action::read:
        return start_io<action::read>(op, *op.slot_);
    case action::read_pooled:
        return start_io<action::read_pooled>(op, *op.slot_);
    case action::write:
        return start_io<action::write>(op, *op.slot_);
    case action::barrier:
        return start_io<action::barrier>(op, *op.slot_);
    default:
        return start_io<action::accept>(op, *op.slot_);
    }
}

inline io_status io_multiplexer::begin(io_operation& op) noexcept {
    constexpr auto again = platform::failed_with(std::errc::resource_unavailable_try_again);
    op.ending_ = io_operation::ending::natural;
    bool const waits = op.state_.what == io_operation::action::wait;
    auto outcome = waits ? again : start_io(op);
    if (outcome == again && op.state_.limited()) {
        outcome = begin_limit(op);
    }
    if (outcome != again) {
        op.settle_outcome(outcome);
        return io_status::completed;
    }
    op.clear();
    op.state_.now = io_operation::phase::pending;
    ++pending_;
    return io_status::pending;
}

inline void io_multiplexer::disarm(io_operation& op) noexcept {
    if (op.state_.limited() && op.queued()) {
        (op.limit().is_system() ? system_timers_ : steady_timers_).erase(op);
    }
}

inline void io_multiplexer::enqueue(io_operation& op) noexcept {
    op.state_.now = io_operation::phase::queued;
    op.queue_ = {queue_tail_, nullptr};
    (queue_tail_ != nullptr ? queue_tail_->queue_.next : queue_head_) = &op;
    queue_tail_ = &op;
}

inline void io_multiplexer::deliver(io_operation& op) noexcept {
    if (!op.state_.told) {
        return deliver_awaited(op);
    }
    op.state_.now = io_operation::phase::done;
    ++counters_.completions;
    op.deliver_(op);
}

inline void io_multiplexer::deliver_awaited(io_operation& op) noexcept {
    op.state_.now = io_operation::phase::done;
    ++counters_.completions;
    auto const waiting = std::coroutine_handle<>::from_address(op.waiting_);
    op.env_->executor.dispatch(waiting).resume();
}

/// As `settle`, of an operation that has no deadline and that a coroutine waits for, with a result of its i/o.
inline void io_multiplexer::settle_awaited(io_operation& op, std::int64_t outcome) noexcept {
    op.leave();
    op.outcome_ = outcome;
    --pending_;
    deliver_awaited(op);
}

inline void io_multiplexer::settle(io_operation& op, std::int64_t outcome) noexcept {
    if (op.state_.limited()) [[unlikely]] {
        return settle_limited(op, outcome);  // at the end, so that others save no registers for it
    }
    op.leave();
    op.settle_outcome(outcome);
    --pending_;
    deliver(op);
}

[[gnu::always_inline]] inline io_backend::outcome io_backend::try_now(io_operation& op) noexcept {
    return owner_.try_now(op);
}

inline io_backend::outcome io_backend::try_simple_read(io_operation& op, handle_slot& s) noexcept {
    buffers const& b = op.request_.read;
    auto const done = platform::os().read(s.native, s.kind, &b.single(), 1);
    io_multiplexer::note_read(s, done, b.bytes(), 1);
    return done;
}

inline void io_backend::settle_awaited(io_operation& op, outcome o) noexcept {
    owner_.settle_awaited(op, o);
}

inline void io_backend::check_driver() noexcept { owner_.check_driver(); }

inline void io_backend::settle(io_operation& op, outcome o) noexcept { owner_.settle(op, o); }

inline void io_operation::settle_outcome(std::int64_t outcome) noexcept {
    // What came first counts: a cancelled operation that had already moved something keeps its result.
    outcome_ = outcome;
    if (ending_ == ending::timed_out &&
        outcome == platform::failed_with(std::errc::operation_canceled)) [[unlikely]] {
        outcome_ = platform::failed_with(std::errc::timed_out);
    }
}

}  // namespace plumb
