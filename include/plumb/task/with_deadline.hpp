// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/deadline.hpp>
#include <plumb/exec/nested_stop_source.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_operation_connection.hpp>
#include <plumb/task/cancellation.hpp>
#include <plumb/task/task.hpp>
#include <plumb/task/with_stop.hpp>

#include <chrono>
#include <system_error>
#include <utility>

namespace plumb {

/// Stops what has its token when the time is over.
class time_limit {
public:
    /// @param env  of the coroutine; must outlive it
    time_limit(io_env const& env, deadline limit) noexcept
        : stop_(env), timer_(async_wait(limit), over{this}) {
        if (!limit.is_infinite()) {
            timer_.start();
        }
    }
    time_limit(time_limit const&) = delete;
    time_limit& operator=(time_limit const&) = delete;

    [[nodiscard]] stop_token token() noexcept { return stop_.token(); }
    [[nodiscard]] bool expired() const noexcept { return expired_; }

private:
    struct over {
        time_limit* of;
        void set_value(result<void>&& waited) const noexcept {
            if (waited) {
                of->expired_ = true;
                of->stop_.request_stop();
            }
        }
        void set_done() const noexcept {}
    };

    nested_stop_source stop_;
    bool expired_ = false;
    io_operation_connection<async_wait, over> timer_;
};

/// Awaits a task, which is stopped at the deadline. Where it then ends as cancelled, throws `std::system_error` with
/// timed_out; where it ends with a value or otherwise all the same, it gives that, so that nothing is lost.
/// On virtual time too. Threads: on an executor of an `io_context`. Allocates: its frame, from the pool.
template <class T>
task<T> with_deadline(deadline limit, task<T> given) {
    time_limit limited(co_await this_env(), limit);
    task<T> t = std::move(given);  // it ends before `limited`
    co_await with_stop(limited.token(), t.finished());
    if (limited.expired() && is_cancellation(t.result().exception())) {
        throw_error(std::make_error_code(std::errc::timed_out), "with_deadline");
    }
    co_return t.take();
}

/// The same, for as long as `d` from the time at which it is awaited.
template <class Rep, class Period, class T>
task<T> with_timeout(std::chrono::duration<Rep, Period> d, task<T> given) {
    return with_deadline(deadline(d), std::move(given));
}

}  // namespace plumb
