// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/children.hpp>

#include <plumb/base/assert.hpp>

namespace plumb {

std::coroutine_handle<> children::begin(awaiting parent, awaitable const& what) noexcept {
    for (std::size_t i = 0; i < what.count; ++i) {
        auto const [coroutine, promise] = what.at(what.in, i);
        require(coroutine && !promise->launched(),
                "a task was given to a combinator that was awaited before, or moved from");
    }
    parent_ = parent;
    parent_.awaits(static_cast<suspension const&>(*this));
    in_ = what.in;
    count_ = what.count;
    stride_ = what.stride;
    at_ = what.at;
    left_.store(count_);
    return start_next();
}

std::coroutine_handle<> children::start_next() noexcept {
    auto const [coroutine, promise] = at_(in_, started_++);
    bool const begins = decided_.load() == nullptr;
    if (begins) {
        promise->launch(parent_, stop_.env(), this);
    }
    if (started_ < count_) {
        stop_.env().executor.post(this);  // from here on another thread may start the next
    }
    return begins ? coroutine : count_down();
}

void children::start_posted(work& self) noexcept {
    static_cast<children&>(self).start_next().resume();
}

std::coroutine_handle<> children::count_down() noexcept {
    if (left_.fetch_sub(1) != 1) {
        return std::noop_coroutine();
    }
    parent_.goes_on();
    return parent_;
}

std::coroutine_handle<> children::on_end(end_hook& hook, promise_base& ended,
                                         bool failed) noexcept {
    auto& self = static_cast<children&>(hook);
    if (failed || self.by_ == decided_by::first_end) {
        promise_base const* none = nullptr;
        if (self.decided_.compare_exchange_strong(none, &ended)) {
            self.stop_.request_stop();
        }
    }
    return self.count_down();
}

std::size_t children::decisive() const noexcept {
    std::size_t i = 0;
    while (i < count_ && at_(in_, i).promise != decided_.load()) {
        ++i;
    }
    return i;
}

}  // namespace plumb
