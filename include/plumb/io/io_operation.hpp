// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/base/buffers.hpp>
#include <plumb/base/deadline.hpp>
#include <plumb/base/io_request.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/pooled_buffer.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/handle/barrier_kind.hpp>
#include <plumb/handle/endpoint.hpp>
#include <plumb/handle/handle.hpp>
#include <plumb/io/io_status.hpp>
#include <plumb/io/timer_queue.hpp>

#include <bit>
#include <coroutine>
#include <cstdint>
#include <system_error>
#include <utility>

namespace plumb {

class io_backend;
class io_multiplexer;
class operation_relay;

/// The state of one i/o operation: all the memory that it ever uses, of one size on every platform. Users meet it
/// inside an `io_operation_connection` or an `io_awaitable`, which add who is told.
///
/// Phases: idle -> pending -> queued -> done, or idle -> queued where it completed at once, or
/// idle -> done where whoever started it takes the result directly. `reset` leads from done to idle.
/// A coroutine on a multiplexer for several threads sends it before: idle -> sent -> idle.
///   idle     belongs to its owner, and may be moved
///   pending  belongs to the multiplexer; the kernel may use its buffers
///   queued   over, its outcome is stored; waits in the multiplexer to be delivered
///   sent     on its way to the thread that drives
///   done     delivered; belongs to its owner again
/// Else only the multiplexer's thread changes the phase. Destroying one in flight there cancels it, waits
/// until the kernel has let go of its buffers, and delivers nothing; on another thread it terminates.
class io_operation : private stop_callback_link, private timer_node {
public:
    enum class action : std::uint8_t {
        read,
        read_pooled,
        write,
        write_zero_copy,
        accept,
        connect,
        receive,
        send,
        wait,
        barrier
    };

    /// Moves an idle operation.
    io_operation(io_operation&& idle) noexcept;
    io_operation& operator=(io_operation&&) = delete;

    /// Whether it was started, and not reset since.
    [[nodiscard]] bool started() const noexcept { return state_.now != phase::idle; }
    /// Whether its result was delivered.
    [[nodiscard]] bool completed() const noexcept { return state_.now == phase::done; }

    /// Asks for an early end: it completes with `operation_canceled`, or with its result where that came first.
    /// Nothing happens unless it is pending. Never calls the receiver itself.
    void cancel() noexcept;

protected:
    /// Tells whoever waits; null where a coroutine does. The operation may be gone afterwards.
    using deliver_function = void (*)(io_operation&) noexcept;

    /// Where an operation has more than a request.
    void choose_buffers(buffers const& list) noexcept {
        request_.read = list;
        state_.list(list);
    }
    void choose_buffers(const_buffers const& list) noexcept {
        request_.write = list;
        state_.list(list);
    }
    void choose_barrier(io_request<const_buffers> const& request, barrier_kind kind) noexcept {
        request_.write = request.buffers;
        offset_ = request.offset;
        barrier_ = kind;
    }
    void choose_multiplexer(io_multiplexer& m) noexcept { multiplexer_ = &m; }

    void choose_capacity(std::size_t most) noexcept {
        choose_buffers(buffers(buffer(nullptr, most)));
    }

    /// @return the outcome of an accept, which is nobody's afterwards
    [[nodiscard]] std::int64_t take_outcome() noexcept;
    /// @return what a pooled read that did not fail has read, which is nobody's afterwards
    [[nodiscard]] pooled_buffer take_block() noexcept {
        if (outcome_ == 0) {
            return {};
        }
        buffer const block = *request_.read.begin();
        auto const size = static_cast<std::size_t>(std::exchange(outcome_, 0));
        return pooled_buffer::adopt(block.data(), block.size(), size);
    }

    /// @param target  null for operations of the multiplexer alone, which `choose_multiplexer` names
    io_operation(action what, handle* target, deadline limit, deliver_function deliver) noexcept
        : timer_node(unmarked()),
          target_(target),
          // A wait without end is queued too: the multiplexer knows all that waits for it.
          state_{.what = what,
                 .told = deliver != nullptr,
                 .special = what == action::wait || !limit.is_infinite() ? steering::has_limit
                                                                         : steering::none} {
        if (state_.told) {
            deliver_ = deliver;
        }
        if (state_.limited()) {
            limit_ns_ = limit.nanoseconds();
            limit_kind_ = limit.kind();
            mark_unqueued();
        }
    }
    io_operation(handle& target, io_request<buffers> const& request, deadline limit,
                 deliver_function deliver) noexcept
        : io_operation(action::read, &target, limit, deliver) {
        choose_buffers(request.buffers.untrimmed());
        offset_ = request.offset;
    }
    io_operation(handle& target, io_request<const_buffers> const& request, deadline limit,
                 deliver_function deliver) noexcept
        : io_operation(action::write, &target, limit, deliver) {
        choose_buffers(request.buffers.untrimmed());
        offset_ = request.offset;
    }
    ~io_operation() { end(); }

    /// Before the state goes: abandons an operation in flight.
    void end() noexcept {
        if (state_.now != phase::idle && state_.now != phase::done) {
            abandon();
        }
    }
    /// After `end`: frees an outcome that owns something and that nobody took.
    void drop_untaken() noexcept;

    /// Whether the kernel uses its buffers beyond its end, and whether it is delivered for the first time: more than
    /// once is for those that hide these.
    static constexpr bool held() noexcept { return false; }
    static constexpr bool first_delivery() noexcept { return true; }

    /// Starts it and queues what completed at once for delivery.
    io_status start_queued() noexcept;

    /// Starts it for a coroutine with this environment: stop requests reach it, and what completes at once is taken
    /// directly, unless the turn's budget of such completions is used up. If it is pending, the coroutine is resumed on
    /// the environment's executor.
    /// @tparam A  the operation's action; those without a case of their own in the code share `accept`'s
    template <action A = action::accept>
    io_status start_awaited(std::coroutine_handle<> waiting, io_env const& env) noexcept;

    /// Instead of the coroutine that waits for it this is told, since it is pending.
    void tell(deliver_function instead) noexcept {
        deliver_ = instead;
        state_.told = true;
    }
    /// A coroutine, if anybody.
    void tell_nobody() noexcept { state_.told = false; }

    /// Once it is done: a coroutine waits for another thing, and a stop request calls the function.
    /// @return false where a stop was already requested
    bool wait_again(std::coroutine_handle<> waiting, io_env const& env,
                    stop_callback_link::function on_stop) noexcept;
    void stop_waiting() noexcept { leave(); }
    /// What was queued to be delivered once more isn't.
    void unqueue_delivery() noexcept;
    static io_operation& operation_of(stop_callback_link& node) noexcept {
        return static_cast<io_operation&>(node);
    }
    /// Queues it to be delivered with this outcome, since it is neither pending nor queued.
    void deliver_later(std::int64_t outcome) noexcept;

    [[nodiscard]] std::coroutine_handle<> waiting() const noexcept {
        return std::coroutine_handle<>::from_address(waiting_);
    }
    [[nodiscard]] io_env const& env() const noexcept { return *env_; }

    /// To be called when its result is taken: spares the compiler what concerns operations in flight.
    void assume_done() const noexcept {
        PLUMB_ASSERT(completed());
        if (!completed()) {
            std::unreachable();
        }
    }

    /// Does the operation's i/o now, if it is ready, and delivers.
    io_status poll_now() noexcept;

    /// From done to idle; also with another request.
    void rearm() noexcept;
    void rearm(const_buffers const& request) noexcept {
        rearm();
        choose_buffers(request.untrimmed());
    }

    /// What the system call gave: not negative, or minus the error.
    [[nodiscard]] std::int64_t outcome() const noexcept { return outcome_; }
    [[nodiscard]] std::error_code error() const noexcept;
    [[nodiscard]] const_buffers const& write_request() const noexcept { return request_.write; }
    /// What was read into, and written, of the request; where the outcome is a number of bytes.
    [[nodiscard]] buffers read() const noexcept { return moved(request_.read); }
    [[nodiscard]] const_buffers written() const noexcept { return moved(request_.write); }

private:
    friend io_backend;
    friend io_multiplexer;
    friend class io_errand;
    friend operation_relay;
    enum class phase : std::uint8_t { idle, pending, queued, sent, done };
    enum class ending : std::uint8_t { natural, canceled, timed_out };
    /// Where an operation on a file is: with nobody, in a queue, being done, over and not yet settled.
    enum class stage : std::uint8_t { none, queued, running, over };

    /// Where it will be started.
    [[nodiscard]] io_multiplexer& chosen_multiplexer() const noexcept;
    [[nodiscard]] inline bool bind() noexcept;
    [[nodiscard]] bool is_registered() const noexcept;
    [[nodiscard]] bool attach() noexcept;
    inline io_status begin() noexcept;
    inline void require_idle() const noexcept;
    inline io_status pend(io_multiplexer& m, io_env const& env) noexcept;
    inline io_status complete_now(io_multiplexer& m) noexcept;
    io_status complete_later() noexcept;
    io_status start_unwatched(std::coroutine_handle<> waiting, io_env const& env) noexcept;
    void start_arrived(io_multiplexer& m, bool cancelled) noexcept;
    template <action A>
    io_status start_otherwise() noexcept;
    inline void settle_outcome(std::int64_t outcome) noexcept;
    void abandon() noexcept;
    template <class Buffers>
    [[nodiscard]] Buffers moved(Buffers const& request) const noexcept {
        auto const n = static_cast<std::size_t>(outcome_);
        if (n > request.bytes()) {
            std::unreachable();  // no call moves more; a check less in each await
        }
        return request.first(n);
    }
    static void on_stop(stop_callback_link&) noexcept;

    [[nodiscard]] deadline limit() const noexcept { return deadline::of(limit_kind_, limit_ns_); }

    struct queue_links {
        io_operation* previous;
        io_operation* next;
    };
    union request_list {
        request_list() noexcept {}
        buffers read;
        const_buffers write;
    };

    // What steers an operation, small enough to be compared at once.
    struct steering {
        action what;
        phase now = phase::idle;
        bool told = false;  // by a function, else a coroutine is resumed
        enum : std::uint8_t { none = 0, has_limit = 1, several_buffers = 2 };
        std::uint8_t special = none;

        [[nodiscard]] bool limited() const noexcept { return (special & has_limit) != 0; }
        template <class Buffers>
        void list(Buffers const& b) noexcept {
            auto const kind = b.is_single() ? none : several_buffers;
            special = static_cast<std::uint8_t>((special & has_limit) | kind);
        }

        /// Whether it is as `start_awaited` has it, or with a function that is told, with one buffer at most and
        /// without a deadline.
        [[nodiscard]] bool plainly(action a, phase p, bool is_told = false) const noexcept {
            return std::bit_cast<std::uint32_t>(*this) ==
                   std::bit_cast<std::uint32_t>(steering{.what = a, .now = p, .told = is_told});
        }
    };

    deliver_function deliver_;  // if told
    handle* target_;     // null for timers; not used once the slot is known, since handles move
    handle_slot* slot_;  // once started
    io_multiplexer* multiplexer_;  // once started; before that where there is no target
    request_list request_;
    extent_type offset_;  // of a read, a write or a barrier
    std::int64_t
        outcome_;  // valid once queued or done; of a file, while pending, how much was moved so far
    std::int64_t limit_ns_;  // if limited; so its kind
    union {
        queue_links queue_;  // while queued; on a file also while pending
        std::uint64_t id_;   // instead, where the backend names it by a number
    };
    void* waiting_;  // the coroutine, if one waits, once started; so its environment
    io_env const* env_;
    steering state_;
    ending ending_;  // once it waits
    deadline::kind_type limit_kind_;
    barrier_kind barrier_;
    stage stage_;  // on a file, once started
};

extern template io_status
io_operation::start_awaited<io_operation::action::read>(std::coroutine_handle<>,
                                                        io_env const&) noexcept;
extern template io_status
io_operation::start_awaited<io_operation::action::read_pooled>(std::coroutine_handle<>,
                                                               io_env const&) noexcept;
extern template io_status
io_operation::start_awaited<io_operation::action::write>(std::coroutine_handle<>,
                                                         io_env const&) noexcept;
extern template io_status
io_operation::start_awaited<io_operation::action::barrier>(std::coroutine_handle<>,
                                                           io_env const&) noexcept;
extern template io_status
io_operation::start_awaited<io_operation::action::accept>(std::coroutine_handle<>,
                                                          io_env const&) noexcept;

static_assert(sizeof(io_operation) <= 184);

}  // namespace plumb
