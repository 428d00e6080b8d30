// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/io_context.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/exec/resumption.hpp>

#include "io/this_thread.hpp"

#include <utility>

namespace plumb {

constinit thread_local io_context const* io_context::running_here = nullptr;

namespace {

std::unique_ptr<io_multiplexer> best() noexcept {
    auto made = io_multiplexer::best_available(1);
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

io_context::io_context() noexcept : io_context(best()) {}

io_context::io_context(std::unique_ptr<io_multiplexer> m) noexcept
    : multiplexer_(std::move(m)), executor_(*this) {
    require(multiplexer_->crew_ == nullptr,
            "an io_context is run by one thread: its multiplexer must be made for one");
}

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
    std::size_t total = 0;
    while (!stopped_.load()) {
        auto const done = multiplexer_->run();
        if (!done) {
            return done.error();
        }
        if (*done == 0) {
            break;
        }
        total += *done > 0 ? static_cast<std::size_t>(*done) : 0;
    }
    stopped_.store(false);
    return total;
}

result<int> io_context::run_some(int max_items, deadline limit) noexcept {
    inside const scope(running_here, *this, *multiplexer_);
    return multiplexer_->run_until(limit, max_items);
}

void io_context::stop() noexcept {
    stopped_.store(true);
    multiplexer_->wake();
}

std::coroutine_handle<> io_context::post_resume(std::coroutine_handle<> h) noexcept {
    multiplexer_->post(make_resumption(h));
    return std::noop_coroutine();
}

}  // namespace plumb
