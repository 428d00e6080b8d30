// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/addressed_operation.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/zero_copy_operation.hpp>

#include "platform/seam.hpp"

#include <memory>

namespace plumb {

class mapped_file_handle;
class seekable_handle;

/// What an `io_multiplexer` stands on: starts operations on registered handles and learns when they end.
///
/// Called only by the thread that drives the multiplexer, except `wake`. Backends see an operation through the
/// protected functions; they report the end of a pending one by `settle`, which delivers it.
class io_backend {
public:
    using outcome = platform::outcome;

    virtual ~io_backend() = default;

    /// Registers a handle: fills the slot. @return 0 or minus the error
    virtual outcome attach(handle& h) noexcept = 0;

    /// Starts an operation on a registered handle.
    /// @return its outcome where it completed at once, else minus EAGAIN: it is pending
    virtual outcome start(io_operation& op) noexcept = 0;

    /// Does the i/o of an operation that is neither a read nor a write of given buffers, without waiting.
    virtual outcome otherwise(io_operation& op) noexcept = 0;

    /// Tries a pending operation now. @return its outcome, which ends it; else minus EAGAIN
    virtual outcome poll(io_operation& op) noexcept = 0;

    /// Ends a pending operation early.
    /// @return its outcome, where that is known at once; else minus EAGAIN: `settle` will tell
    virtual outcome cancel(io_operation& op) noexcept = 0;

    /// Waits up to `timeout` ns (-1: forever) for events, or for `wake`, and settles operations, up to `max_items`.
    /// @return how many operations it settled, or minus the error
    virtual outcome reap(std::int64_t timeout, int max_items) noexcept = 0;

    /// Waits until a pending operation that was cancelled has ended; queues others that end meanwhile.
    /// @return its outcome
    virtual outcome await_end(io_operation& op) noexcept = 0;

    /// Waits until the kernel has let go of the buffer of a write whose result is known.
    virtual void await_release(zero_copy_operation&) noexcept {}
    static void await_release_of(zero_copy_operation& op) noexcept;

    /// Ends waits whenever `watch` becomes readable, while the backend lives. At most once.
    virtual void end_waits_by(native_handle watch) noexcept = 0;

    /// Ends the current or next wait. Any thread, also signal handlers.
    virtual void wake() noexcept = 0;

    /// The short way of a read into one buffer: whether it may be there in memory, and the read.
    /// @return the outcome, else minus EAGAIN: then `begin_on_file` is next
    static bool may_be_in_memory(io_operation const& op, handle_slot const& s) noexcept {
        return s.kind == handle_kind::file && s.misses == 0 &&
               op.offset_ != io_request<buffers>::no_offset;
    }
    static outcome try_from_memory(io_operation& op, handle_slot& s) noexcept;

protected:
    explicit io_backend(io_multiplexer& owner) noexcept : owner_(owner) {}

    static constexpr outcome again =
        platform::failed_with(std::errc::resource_unavailable_try_again);

    [[nodiscard]] io_multiplexer& owner() const noexcept { return owner_; }

    using action = io_operation::action;
    static action what(io_operation const& op) noexcept { return op.state_.what; }
    static handle_slot* slot(io_operation const& op) noexcept { return op.slot_; }
    static buffers const& read_request(io_operation const& op) noexcept { return op.request_.read; }
    static const_buffers const& write_request(io_operation const& op) noexcept {
        return op.request_.write;
    }
    static bool never_waits(io_operation const& op) noexcept {
        return op.state_.limited() && op.limit().is_zero();
    }
    static void set_block(io_operation& op, buffer block) noexcept { op.request_.read = block; }
    /// Of a connect, a send, or a receive.
    static endpoint& address(io_operation& op) noexcept {
        return static_cast<addressed_operation&>(op).address_;
    }
    /// Takes the place of the address while a receive is pending.
    template <class Native>
    static Native& native_address_room(io_operation& op) noexcept {
        auto& room = static_cast<addressed_operation&>(op).native_;
        static_assert(sizeof(Native) <= sizeof(room) && alignof(Native) <= 8);
        return reinterpret_cast<Native&>(room);
    }

    static io_backend& backend_of(io_multiplexer& m) noexcept { return *m.backend_; }
    static native_handle native(handle const& h) noexcept { return h.native_; }
    /// Of a slot that is complete.
    void set_slot(handle& h, handle_slot& s) noexcept {
        s.multiplexer = &owner_;
        h.slot_.store(&s, std::memory_order_release);
    }

    /// Lets this thread drive for a moment what is for several threads, when none of them does. Null is allowed.
    class visiting {
    public:
        explicit visiting(io_multiplexer* m) noexcept
            : visited_(m != nullptr && m->crew_ != nullptr && m->begin_visit() ? m : nullptr) {}
        visiting(visiting const&) = delete;
        visiting& operator=(visiting const&) = delete;
        ~visiting() {
            if (visited_ != nullptr) {
                visited_->end_visit();
            }
        }

    private:
        io_multiplexer* const visited_;
    };

    /// Does an operation's i/o directly, and notes what that tells of the slot's readiness.
    inline outcome try_now(io_operation& op) noexcept;
    /// Ends the process unless this thread drives the multiplexer.
    inline void check_driver() noexcept;

    /// Whether a coroutine waits for it, without a deadline and with one buffer.
    static bool awaited_plainly(io_operation const& op, action a) noexcept {
        return op.state_.plainly(a, io_operation::phase::pending);
    }
    /// The same while it is started.
    static bool starts_plainly(io_operation const& op, action a) noexcept {
        return op.state_.plainly(a, io_operation::phase::idle);
    }
    /// Whether it is such a read; and the steps of one.
    static bool awaited_simple_read(io_operation const& op) noexcept {
        return awaited_plainly(op, action::read);
    }
    static inline outcome try_simple_read(io_operation& op, handle_slot& s) noexcept;
    inline void settle_awaited(io_operation& op, outcome o) noexcept;

    // Operations on files. A handle may have any number in flight. Each is done in parts, since no call takes lists of
    // every length, and since its beginning may be in memory while the rest is not; `outcome_` counts what they moved.

    using stage = io_operation::stage;
    static stage& stage_of(io_operation& op) noexcept { return op.stage_; }
    static stage stage_of(io_operation const& op) noexcept { return op.stage_; }
    static outcome outcome_of(io_operation const& op) noexcept { return op.outcome_; }
    static void set_outcome(io_operation& op, outcome o) noexcept { op.outcome_ = o; }
    static std::uint64_t& id_of(io_operation& op) noexcept { return op.id_; }
    static extent_type offset_of(io_operation const& op) noexcept { return op.offset_; }
    static barrier_kind kind_of_barrier(io_operation const& op) noexcept { return op.barrier_; }

    /// Whether bytes move past the system's memory.
    static bool goes_to_device(io_operation const& op) noexcept;
    /// Makes a slot one of a file.
    void set_file(handle_slot& s, handle& h) noexcept;
    /// Does what can be done without waiting; the first step of each start on a file.
    /// @return the outcome, else minus EAGAIN: unless it `never_waits` the parts are to be done
    static outcome begin_on_file(io_operation& op) noexcept;
    /// Does the next part, which blocks.
    static outcome do_part(io_operation& op) noexcept;
    /// Adds what came of a part. @return the outcome of the operation, else minus EAGAIN: there is another part
    static outcome add_part(io_operation& op, outcome part) noexcept;

    /// Operations on files, in the order in which they came.
    class file_queue {
    public:
        [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
        [[nodiscard]] io_operation* first() const noexcept { return head_; }
        static io_operation* after(io_operation const& op) noexcept { return op.queue_.next; }
        void push(io_operation& op) noexcept {
            op.queue_ = {tail_, nullptr};
            (tail_ != nullptr ? tail_->queue_.next : head_) = &op;
            tail_ = &op;
        }
        void erase(io_operation& op) noexcept {
            auto const [previous, next] = op.queue_;
            (previous != nullptr ? previous->queue_.next : head_) = next;
            (next != nullptr ? next->queue_.previous : tail_) = previous;
        }

    private:
        io_operation* head_ = nullptr;
        io_operation* tail_ = nullptr;
    };

    /// Does i/o on files for a backend that can't wait for it.
    class file_helpers;

    /// Wakes the thread that drives. Any thread.
    void call_driver() noexcept;

    /// A pending operation is over: delivers it.
    inline void settle(io_operation& op, outcome o) noexcept;
    /// A pending operation is over: queues it for delivery.
    void settle_later(io_operation& op, outcome o) noexcept;

    /// The kernel uses the buffer of a write beyond its end, which comes next.
    void hold(zero_copy_operation& op) noexcept;
    /// No longer.
    void release(zero_copy_operation& op) noexcept;
    /// The same as the backend ends.
    static void forget(zero_copy_operation& op) noexcept {
        op.held_ = false;
        op.drop_waiter();
    }

private:
    static outcome begin_read(io_operation& op, seekable_handle& file) noexcept;
    static outcome begin_mapped_read(io_operation& op, mapped_file_handle& file) noexcept;

    io_multiplexer& owner_;
};

/// Whether an operation waits for its handle to be readable, else for it to be writable.
constexpr bool reads(io_operation::action a) noexcept {
    return a <= io_operation::action::read_pooled || a == io_operation::action::accept ||
           a == io_operation::action::receive;
}

}  // namespace plumb
