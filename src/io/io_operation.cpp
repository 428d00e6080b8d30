// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_operation.hpp>

#include <plumb/base/assert.hpp>

#include "io/io_lifecycle.hpp"
#include "io/this_thread.hpp"
#include "platform/seam.hpp"

#include <utility>

namespace plumb {

io_operation::io_operation(io_operation&& idle) noexcept
    : deliver_(idle.deliver_),
      target_(idle.target_),
      multiplexer_(idle.multiplexer_),
      request_(idle.request_),
      limit_(idle.limit_),
      action_(idle.action_) {
    require(!idle.started(),
            "an i/o operation was moved after its start: it is pinned until set_done");
}

std::error_code io_operation::error() const noexcept { return platform::error_of(outcome_); }

std::int64_t io_operation::take_outcome() noexcept {
    return std::exchange(outcome_, platform::failed_with(std::errc::bad_file_descriptor));
}

pooled_buffer io_operation::take_block() noexcept {
    if (outcome_ <= 0) {
        return {};
    }
    buffer const block = *request_.read.begin();
    auto const size = static_cast<std::size_t>(std::exchange(outcome_, 0));
    choose_capacity(block.size());
    return pooled_buffer::adopt(block.data(), block.size(), size);
}

void io_operation::drop_untaken() noexcept {
    if (phase_ != phase::done || outcome_ < 0) {
        return;
    }
    if (action_ == action::accept) {
        platform::os().close(take_outcome());
    } else {
        (void)take_block();
    }
}

inline bool io_operation::bind() noexcept {
    if (target_ == nullptr) {
        return true;
    }
    slot_ = target_->slot_;
    if (slot_ == nullptr) [[unlikely]] {
        return attach();
    }
    multiplexer_ = slot_->multiplexer;
    require(multiplexer_ != nullptr,
            "an i/o operation was started on a handle whose multiplexer is gone");
    return true;
}

bool io_operation::attach() noexcept {
    multiplexer_ =
        target_->multiplexer_ != nullptr ? target_->multiplexer_ : &io_multiplexer::this_thread();
    multiplexer_->check_driver();
    outcome_ = target_->is_open() ? multiplexer_->backend_->attach(*target_)
                                  : platform::failed_with(std::errc::bad_file_descriptor);
    if (outcome_ < 0) {
        return false;
    }
    slot_ = target_->slot_;
    slot_->multiplexer = multiplexer_;
    return true;
}

inline io_status io_operation::begin() noexcept {
    require(phase_ == phase::idle,
            "an i/o operation was started twice: reset it once it is completed");
    if (!bind()) {
        return io_status::completed;
    }
    multiplexer_->check_driver();
    return multiplexer_->begin(*this);
}

io_status io_operation::start_queued() noexcept {
    auto const status = begin();
    if (status == io_status::completed) {
        ++multiplexer_->pending_;
        multiplexer_->enqueue(*this);
    }
    return status;
}

/// Of what completed at once: taken by the awaiter, unless the turn's budget is used up.
inline io_status io_operation::complete_now() noexcept {
    io_multiplexer& m = *multiplexer_;
    if (--m.budget_ < 0) [[unlikely]] {
        ++m.pending_;
        m.enqueue(*this);
        return io_status::pending;
    }
    ++m.counters_.completions;
    phase_ = phase::done;
    return io_status::completed;
}

// The way of every await: one function for each of the actions that servers repeat, with no call between the
// coroutine and the system call. What only has to wait leaves here.
template <io_operation::action A>
io_status io_operation::start_awaited(io_env const& env) noexcept {
    if (env.stop.stop_requested()) [[unlikely]] {
        return refuse();
    }
    require(phase_ == phase::idle,
            "an i/o operation was started twice: reset it once it is completed");
    if (A == action::accept && target_ == nullptr) {
        return wait_awaited(env);
    }
    handle_slot* const s = target_->slot_;
    if (s == nullptr) [[unlikely]] {
        return attach_and_start<A>(env);
    }
    if constexpr (A == action::read || A == action::read_pooled) {
        io_multiplexer* const m = s->multiplexer;
        bool const only_waits = (s->ready & platform::readable) == 0 &&
                                (s->watched & platform::readable) != 0 && s->reader == nullptr &&
                                !request_.read.empty() && limit_.is_infinite();
        // No call in here, so that no register has to be saved.
        if (only_waits && m->driven_here()) [[likely]] {
            slot_ = s;
            multiplexer_ = m;
            ending_ = ending::natural;
            s->reader = this;
            phase_ = phase::pending;
            ++m->pending_;
            env.stop.watch(*this, &io_operation::on_stop);
            return io_status::pending;
        }
    }
    return start_now<A>(*s, env);
}

template <io_operation::action A>
[[gnu::noinline]] io_status io_operation::start_now(handle_slot& s, io_env const& env) noexcept {
    constexpr auto again = platform::failed_with(std::errc::resource_unavailable_try_again);
    slot_ = &s;
    io_multiplexer* const m = s.multiplexer;
    multiplexer_ = m;
    require(m != nullptr, "an i/o operation was started on a handle whose multiplexer is gone");
    m->check_driver();
    ending_ = ending::natural;
    auto outcome = m->start_io<A>(*this, s);
    if (outcome == again) {
        if (!limit_.is_infinite()) [[unlikely]] {
            outcome = m->begin_limit(*this);
        }
        if (outcome == again) {
            phase_ = phase::pending;
            ++m->pending_;
            env.stop.watch(*this, &io_operation::on_stop);
            return io_status::pending;
        }
    }
    settle_outcome(outcome);
    return complete_now();
}

template <io_operation::action A>
[[gnu::noinline]] io_status io_operation::attach_and_start(io_env const& env) noexcept {
    if (!attach()) {
        phase_ = phase::done;
        return io_status::completed;
    }
    return start_now<A>(*slot_, env);
}

io_status io_operation::wait_awaited(io_env const& env) noexcept {
    multiplexer_->check_driver();
    if (multiplexer_->begin(*this) == io_status::pending) {
        env.stop.watch(*this, &io_operation::on_stop);
        return io_status::pending;
    }
    return complete_now();
}

io_status io_operation::refuse() noexcept {
    outcome_ = platform::failed_with(std::errc::operation_canceled);
    phase_ = phase::done;
    return io_status::completed;
}

template io_status io_operation::start_awaited<io_operation::action::read>(io_env const&) noexcept;
template io_status
io_operation::start_awaited<io_operation::action::read_pooled>(io_env const&) noexcept;
template io_status io_operation::start_awaited<io_operation::action::write>(io_env const&) noexcept;
template io_status
io_operation::start_awaited<io_operation::action::accept>(io_env const&) noexcept;

io_status io_operation::poll_now() noexcept {
    if (phase_ == phase::pending) {
        multiplexer_->check_driver();
        auto const again = platform::failed_with(std::errc::resource_unavailable_try_again);
        auto const outcome = action_ == action::wait ? again : multiplexer_->backend_->poll(*this);
        if (outcome != again) {
            multiplexer_->settle(*this, outcome);
            return io_status::completed;
        }
        if (!limit_.is_infinite() && queued()) {
            auto const& os = platform::os();
            if (due() <= (limit_.is_system() ? os.system_now() : os.steady_now())) {
                if (action_ == action::wait) {
                    multiplexer_->settle(*this, 0);
                    return io_status::completed;
                }
                multiplexer_->end_early(*this, ending::timed_out);
            }
        }
    }
    if (phase_ == phase::queued) {
        multiplexer_->unqueue(*this);
        multiplexer_->deliver(*this);
        return io_status::completed;
    }
    return phase_ == phase::done ? io_status::completed : io_status::pending;
}

void io_operation::cancel() noexcept {
    if (phase_ == phase::pending) {
        multiplexer_->check_driver();
        multiplexer_->end_early(*this, ending::canceled);
    }
}

void io_operation::on_stop(stop_callback_link& node) noexcept {
    static_cast<io_operation&>(node).cancel();
}

void io_operation::rearm() noexcept {
    require(phase_ == phase::done || phase_ == phase::idle,
            "an i/o operation was reset before it was completed");
    phase_ = phase::idle;
}

void io_operation::abandon() noexcept {
    multiplexer_->check_driver();
    if (phase_ == phase::pending) {
        unregister();
        multiplexer_->end_early(*this, ending::canceled);
        if (phase_ == phase::pending) {
            outcome_ = multiplexer_->backend_->await_end(*this);
            --multiplexer_->pending_;
            phase_ = phase::done;
            return;
        }
    }
    multiplexer_->unqueue(*this);
    phase_ = phase::done;
}

}  // namespace plumb
