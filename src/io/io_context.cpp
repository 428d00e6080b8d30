// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_context.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/exec/resumption.hpp>

#include "io/this_thread.hpp"

#include <utility>

namespace plumb {

constinit thread_local io_context const* io_context::running_here = nullptr;

namespace {

std::unique_ptr<io_multiplexer> best(int threads) noexcept {
    auto made = io_multiplexer::best_available(threads);
    require(made.has_value(), "io_context: no i/o multiplexer can be had (see PLUMB_MULTIPLEXER)");
    return std::move(*made);
}

/// Makes this thread use the context's multiplexer while it lives.
class inside {
public:
    inside(io_context const*& here, io_context const& c, io_multiplexer& m) noexcept
        : here_(here),
          outer_(std::exchange(here, &c)),
          outer_multiplexer_(std::exchange(this_thread_multiplexer, &m)) {}
    inside(inside const&) = delete;
    inside& operator=(inside const&) = delete;
    ~inside() {
        here_ = outer_;
        this_thread_multiplexer = outer_multiplexer_;
    }

private:
    io_context const*& here_;
    io_context const* outer_;
    io_multiplexer* outer_multiplexer_;
};

}  // namespace

io_context::io_context(int threads) noexcept : io_context(best(threads)) {}

io_context::io_context(std::unique_ptr<io_multiplexer> m) noexcept
    : multiplexer_(std::move(m)),
      concurrent_(multiplexer_->crew_ != nullptr),
      executor_(*this),
      roots_("io_context", concurrent_) {}

io_context::~io_context() {
    require(running_here != this, "an io_context was destroyed from inside its run");
    inside const scope(running_here, *this, *multiplexer_);
    multiplexer_->drive_here();
    // Work that is queued may be part of a coroutine, and a coroutine may queue some when it is destroyed.
    do {
        multiplexer_->drop_posted();
    } while (roots_.destroy_youngest());
}

result<std::size_t> io_context::run() noexcept {
    inside const scope(running_here, *this, *multiplexer_);
    result<std::size_t> total = std::size_t{0};
    bool stalled = false;
    runs_.fetch_add(one_run);
    while ((runs_.load() & stopped) == 0) {
        auto const done = multiplexer_->run();
        // A system that sees that a wait can't end says so; others are idle.
        stalled = done ? *done == 0 : done.error() == std::errc::resource_deadlock_would_occur;
        if (!done) {
            total = done.error();
            break;
        }
        if (*done == 0) {
            break;
        }
        *total += *done > 0 ? static_cast<std::size_t>(*done) : 0;
    }
    if (leave_run() && stalled && on_stall_ != nullptr && !roots_.empty()) {
        on_stall_(*this);
    }
    return total;
}

bool io_context::leave_run() noexcept {
    unsigned before = runs_.load();
    unsigned after = 0;
    do {
        after = before - one_run;
        after = after == stopped ? 0 : after;
    } while (!runs_.compare_exchange_weak(before, after));
    if ((after & stopped) != 0) {
        multiplexer_->wake();  // the next of them
    }
    return after == 0;
}

result<int> io_context::run_some(int max_items, deadline limit) noexcept {
    inside const scope(running_here, *this, *multiplexer_);
    return multiplexer_->run_until(limit, max_items);
}

void io_context::stop() noexcept {
    runs_.fetch_or(stopped);
    multiplexer_->wake();
}

std::coroutine_handle<> io_context::post_resume(std::coroutine_handle<> h) noexcept {
    multiplexer_->post(make_resumption(h));
    return std::noop_coroutine();
}

}  // namespace plumb
