// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation.hpp>

#include <plumb/base/assert.hpp>

#include "io/io_errand.hpp"
#include "io/io_lifecycle.hpp"
#include "io/this_thread.hpp"
#include "platform/seam.hpp"

#include <utility>

namespace plumb {

io_operation::io_operation(io_operation&& idle) noexcept
    : timer_node(unmarked()),
      deliver_(idle.deliver_),
      target_(idle.target_),
      multiplexer_(idle.multiplexer_),
      request_(idle.request_),
      offset_(idle.offset_),
      state_(idle.state_),
      barrier_(idle.barrier_) {
    if (state_.limited()) {
        limit_ns_ = idle.limit_ns_;
        limit_kind_ = idle.limit_kind_;
        mark_unqueued();
    }
    require(!idle.started(),
            "an i/o operation was moved after its start: it is pinned until set_done");
}

std::error_code io_operation::error() const noexcept { return platform::error_of(outcome_); }

std::int64_t io_operation::take_outcome() noexcept {
    return std::exchange(outcome_, platform::failed_with(std::errc::bad_file_descriptor));
}

void io_operation::drop_untaken() noexcept {
    if (state_.now != phase::done || outcome_ < 0) {
        return;
    }
    if (state_.what == action::accept) {
        platform::os().close(take_outcome());
    } else {
        (void)take_block();
    }
}

inline bool io_operation::bind() noexcept {
    if (target_ == nullptr) {
        return true;
    }
    slot_ = target_->slot_.load(std::memory_order_acquire);
    multiplexer_ = slot_->multiplexer;
    if (multiplexer_ == nullptr) [[unlikely]] {
        return attach();
    }
    return true;
}

io_multiplexer& io_operation::chosen_multiplexer() const noexcept {
    if (target_ == nullptr) {
        return *multiplexer_;
    }
    if (handle_slot const* const s = target_->slot()) {
        require(s->multiplexer != nullptr,
                "an i/o operation was started on a handle whose multiplexer is gone");
        return *s->multiplexer;
    }
    return target_->multiplexer_ != nullptr ? *target_->multiplexer_
                                            : io_multiplexer::this_thread();
}

bool io_operation::is_registered() const noexcept {
    return target_ == nullptr || target_->slot() != nullptr;
}

bool io_operation::attach() noexcept {
    multiplexer_ = &chosen_multiplexer();
    multiplexer_->check_driver();
    if (!target_->is_open()) {
        outcome_ = platform::failed_with(std::errc::bad_file_descriptor);
    } else {
        outcome_ = multiplexer_->backend_->attach(*target_);
    }
    if (outcome_ < 0) {
        return false;
    }
    slot_ = target_->slot();
    return true;
}

inline void io_operation::require_idle() const noexcept {
    require(!started(), "an i/o operation was started twice: reset it once it is completed");
}

inline io_status io_operation::begin() noexcept {
    require_idle();
    if (!bind()) {
        return io_status::completed;
    }
    multiplexer_->check_driver();
    return multiplexer_->begin(*this);
}

io_status io_operation::start_queued() noexcept {
    // What those do who poll: a read into one buffer of what is there.
    if (state_.plainly(action::read, phase::idle, true) && !request_.read.empty() &&
        target_->slot_.load(std::memory_order_relaxed)->multiplexer != nullptr) [[likely]] {
        handle_slot& s = *target_->slot_.load(std::memory_order_relaxed);
        bool const ready = (s.ready & platform::readable) != 0 && s.reader == nullptr;
        if ((ready || io_backend::may_be_in_memory(*this, s)) && s.multiplexer->driven_here()) {
            auto const done =
                ready ? platform::os().read(s.native, s.kind, &request_.read.single(), 1)
                      : io_backend::try_from_memory(*this, s);
            if (ready) {
                io_multiplexer::note_read(s, done, request_.read.bytes(), 1);
            }
            if (done != platform::failed_with(std::errc::resource_unavailable_try_again)) {
                slot_ = &s;
                multiplexer_ = s.multiplexer;
                deliver_later(done);
                return io_status::completed;
            }
        }
    }
    auto const status = begin();
    if (status == io_status::completed) {
        deliver_later(outcome_);
    }
    return status;
}

void io_operation::deliver_later(std::int64_t outcome) noexcept {
    outcome_ = outcome;
    ++multiplexer_->pending_;
    multiplexer_->enqueue(*this);
}

/// It waits for its i/o or deadline.
inline io_status io_operation::pend(io_multiplexer& m, io_env const& env) noexcept {
    state_.now = phase::pending;
    ++m.pending_;
    env.stop.watch(*this, &io_operation::on_stop);
    return io_status::pending;
}

/// Of what completed at once: taken by the awaiter, unless the turn's budget is used up.
inline io_status io_operation::complete_now(io_multiplexer& m) noexcept {
    if (m.budget_-- == 0) [[unlikely]] {
        return complete_later();
    }
    state_.now = phase::done;
    return io_status::completed;
}

io_status io_operation::complete_later() noexcept {
    multiplexer_->budget_ = 0;
    deliver_later(outcome_);
    return io_status::pending;
}

// The way of every await. What servers do all the time is here, with no call between the coroutine and the system
// call: a read that has to wait, and a write that need not. All else leaves, so that no register is saved for it.
template <io_operation::action A>
io_status io_operation::start_awaited(std::coroutine_handle<> waiting, io_env const& env) noexcept {
    constexpr auto again = platform::failed_with(std::errc::resource_unavailable_try_again);
    if (!env.stop.can_watch()) [[unlikely]] {
        return start_unwatched(waiting, env);
    }
    waiting_ = waiting.address();
    env_ = &env;
    if constexpr (A == action::read || A == action::read_pooled) {
        handle_slot* const s = target_->slot_.load(std::memory_order_acquire);
        io_multiplexer* const m = s->multiplexer;
        if (m != nullptr && m->driven_here() && s->only_waits(platform::readable) &&
            s->reader == nullptr && state_.plainly(A, phase::idle) && !request_.read.empty())
            [[likely]] {
            slot_ = s;
            multiplexer_ = m;
            ending_ = ending::natural;
            s->reader = this;
            return pend(*m, env);
        }
    }
    if constexpr (A == action::write) {
        handle_slot* const s = target_->slot_.load(std::memory_order_acquire);
        io_multiplexer* const m = s->multiplexer;
        if (m != nullptr && m->driven_here() && s->writer == nullptr &&
            state_.plainly(A, phase::idle) && !request_.write.empty()) [[likely]] {
            if ((s->ready & platform::writable) != 0) [[likely]] {
                slot_ = s;
                multiplexer_ = m;
                outcome_ = platform::os().write(s->native, s->kind, &request_.write.single(), 1);
                if (outcome_ != again) [[likely]] {
                    return complete_now(*multiplexer_);
                }
                slot_->ready &= ~std::uint32_t{platform::writable};
            } else if ((s->watched & platform::writable) == 0) {
                slot_ = s;
                multiplexer_ = m;
                ending_ = ending::natural;
                auto const begun = m->backend_->start(*this);
                if (begun == again) {
                    return pend(*multiplexer_, *env_);
                }
                outcome_ = begun;
                return complete_now(*multiplexer_);
            }
        }
    }
    return start_otherwise<A>();
}

template <io_operation::action A>
[[gnu::noinline]] io_status io_operation::start_otherwise() noexcept {
    constexpr auto again = platform::failed_with(std::errc::resource_unavailable_try_again);
    if (chosen_multiplexer().crew_ != nullptr) {
        return io_errand::start(*this);
    }
    require_idle();
    if (!bind()) {
        state_.now = phase::done;
        return io_status::completed;
    }
    io_multiplexer& m = *multiplexer_;
    m.check_driver();
    ending_ = ending::natural;
    auto outcome = state_.what == action::wait ? again : m.start_io<A>(*this, *slot_);
    if (outcome == again && state_.limited()) {
        outcome = m.begin_limit(*this);
    }
    if (outcome == again) {
        return pend(m, *env_);
    }
    settle_outcome(outcome);
    return complete_now(m);
}

bool io_operation::wait_again(std::coroutine_handle<> waiting, io_env const& env,
                              stop_callback_link::function when_stopped) noexcept {
    if (!env.stop.can_watch()) {
        return false;
    }
    waiting_ = waiting.address();
    env_ = &env;
    env.stop.watch(*this, when_stopped);
    return true;
}

void io_operation::unqueue_delivery() noexcept {
    if (state_.now == phase::queued) {
        multiplexer_->unqueue(*this);
        state_.now = phase::done;
        state_.told = false;
    }
}

/// With a token that no operation can watch by itself.
io_status io_operation::start_unwatched(std::coroutine_handle<> waiting,
                                        io_env const& env) noexcept {
    if (env.stop.stop_requested()) {
        outcome_ = platform::failed_with(std::errc::operation_canceled);
        state_.now = phase::done;
        return io_status::completed;
    }
    waiting_ = waiting.address();
    env_ = &env;
    return io_errand::start(*this);
}

/// On the thread that drives `m`, when it has come from another.
void io_operation::start_arrived(io_multiplexer& m, bool cancelled) noexcept {
    // What is released by another thread than the one that drives can't be awaited: it is copied.
    if (state_.what == action::write_zero_copy && io_errand::carries(*this)) {
        state_.what = action::write;
    }
    // Closed meanwhile, a handle has forgotten its multiplexer.
    bool const closed = target_ != nullptr && !target_->is_open();
    if (!cancelled && !closed) {
        (void)start_queued();
        return;
    }
    multiplexer_ = &m;
    deliver_later(platform::failed_with(closed ? std::errc::bad_file_descriptor
                                               : std::errc::operation_canceled));
}

template io_status io_operation::start_awaited<io_operation::action::read>(std::coroutine_handle<>,
                                                                           io_env const&) noexcept;
template io_status
io_operation::start_awaited<io_operation::action::read_pooled>(std::coroutine_handle<>,
                                                               io_env const&) noexcept;
template io_status io_operation::start_awaited<io_operation::action::write>(std::coroutine_handle<>,
                                                                            io_env const&) noexcept;
template io_status
io_operation::start_awaited<io_operation::action::barrier>(std::coroutine_handle<>,
                                                           io_env const&) noexcept;
template io_status
io_operation::start_awaited<io_operation::action::accept>(std::coroutine_handle<>,
                                                          io_env const&) noexcept;

io_status io_operation::poll_now() noexcept {
    if (state_.now == phase::pending) {
        multiplexer_->check_driver();
        auto const again = platform::failed_with(std::errc::resource_unavailable_try_again);
        auto const outcome =
            state_.what == action::wait ? again : multiplexer_->backend_->poll(*this);
        if (outcome != again) {
            multiplexer_->settle(*this, outcome);
            return io_status::completed;
        }
        if (state_.limited() && queued()) {
            auto const& os = platform::os();
            if (due() <= (limit().is_system() ? os.system_now() : os.steady_now())) {
                if (state_.what == action::wait) {
                    multiplexer_->settle(*this, 0);
                    return io_status::completed;
                }
                multiplexer_->end_early(*this, ending::timed_out);
            }
        }
    }
    if (state_.now == phase::queued) {
        multiplexer_->unqueue(*this);
        multiplexer_->deliver(*this);
        return io_status::completed;
    }
    return state_.now == phase::done ? io_status::completed : io_status::pending;
}

void io_operation::cancel() noexcept {
    if (state_.now == phase::pending) {
        multiplexer_->check_driver();
        multiplexer_->end_early(*this, ending::canceled);
    }
}

void io_operation::on_stop(stop_callback_link& node) noexcept {
    static_cast<io_operation&>(node).cancel();
}

void io_operation::rearm() noexcept {
    require(state_.now == phase::done || state_.now == phase::idle,
            "an i/o operation was reset before it was completed");
    state_.now = phase::idle;
}

void io_operation::abandon() noexcept {
    multiplexer_->check_driver();
    if (io_errand::carries(*this)) {
        io_errand::withdraw(*this);
        if (state_.now == phase::done) {
            return;
        }
    }
    if (state_.now == phase::pending) {
        leave();
        multiplexer_->end_early(*this, ending::canceled);
        if (state_.now == phase::pending) {
            outcome_ = multiplexer_->backend_->await_end(*this);
            --multiplexer_->pending_;
            state_.now = phase::done;
            return;
        }
    }
    multiplexer_->unqueue(*this);
    state_.now = phase::done;
}

}  // namespace plumb
