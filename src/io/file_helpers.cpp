// SPDX-License-Identifier: Apache-2.0
#include "io/file_helpers.hpp"

#include <cstddef>

namespace plumb {

io_backend::file_helpers::~file_helpers() {
    {
        std::scoped_lock const locked(mutex_);
        ended_ = true;
        work_.notify_all();
    }
    for (std::size_t i = 0; i < started_; ++i) {
        platform::os().join_thread(threads_[i]);
    }
}

/// Starts all of them, so that what comes later allocates nothing, whatever runs at the same time; what can't be
/// started now is tried again.
/// @return whether there is a thread
bool io_backend::file_helpers::start_threads() noexcept {
    process_ = platform::os().process();
    while (started_ != most) {
        threads_[started_] = {[](void* self) noexcept { static_cast<file_helpers*>(self)->help(); },
                              this};
        if (platform::os().start_thread(threads_[started_]) < 0) {
            break;
        }
        ++started_;
    }
    return started_ != 0;
}

platform::outcome io_backend::file_helpers::start(io_operation& op) noexcept {
    if (started_ != 0 && forked()) {
        return platform::failed_with(std::errc::not_supported);  // the helpers stayed behind
    }
    std::scoped_lock const locked(mutex_);
    if (started_ != most && !start_threads()) {
        return platform::failed_with(std::errc::not_supported);
    }
    stage_of(op) = stage::queued;
    ++slot(op)->in_flight;
    queued_.push(op);
    work_.notify_one();
    return again;
}

void io_backend::file_helpers::help() noexcept {
    std::unique_lock locked(mutex_);
    while (!ended_) {
        io_operation* const op = queued_.first();
        if (op == nullptr) {
            work_.wait(locked);
            continue;
        }
        queued_.erase(*op);
        running_.push(*op);
        stage_of(*op) = stage::running;
        locked.unlock();
        outcome done = again;
        while (done == again) {
            done = add_part(*op, do_part(*op));
        }
        locked.lock();
        running_.erase(*op);
        stage_of(*op) = stage::over;
        set_outcome(*op, done);
        over_.push(*op);
        any_over_.store(true);
        if (awaited_) {
            done_.notify_one();
        }
        of_.call_driver();
    }
}

void io_backend::file_helpers::take_out(io_operation& op) noexcept {
    (stage_of(op) == stage::queued ? queued_ : over_).erase(op);
    stage_of(op) = stage::none;
    --slot(op)->in_flight;
    any_over_.store(!over_.empty());
}

platform::outcome io_backend::file_helpers::poll(io_operation& op) noexcept {
    std::scoped_lock const locked(mutex_);
    if (stage_of(op) != stage::over) {
        return again;
    }
    take_out(op);
    return outcome_of(op);
}

platform::outcome io_backend::file_helpers::cancel(io_operation& op) noexcept {
    constexpr auto canceled = platform::failed_with(std::errc::operation_canceled);
    if (forked()) {
        return canceled;
    }
    std::scoped_lock const locked(mutex_);
    switch (stage_of(op)) {
    case stage::none:
        return canceled;
    case stage::queued:
        take_out(op);
        return canceled;
    case stage::running:
        return again;
    case stage::over:
        break;
    }
    take_out(op);
    return outcome_of(op);
}

void io_backend::file_helpers::await_over(std::unique_lock<std::mutex>& locked,
                                          io_operation const& op) noexcept {
    awaited_ = true;
    done_.wait(locked, [&] { return stage_of(op) == stage::over; });
    awaited_ = false;
}

platform::outcome io_backend::file_helpers::await(io_operation& op) noexcept {
    if (forked()) {
        return platform::failed_with(std::errc::operation_canceled);
    }
    std::unique_lock locked(mutex_);
    await_over(locked, op);
    take_out(op);
    return outcome_of(op);
}

io_operation* io_backend::file_helpers::take_over_one() noexcept {
    std::scoped_lock const locked(mutex_);
    io_operation* const op = over_.first();
    if (op != nullptr) {
        take_out(*op);
    }
    return op;
}

io_operation* io_backend::file_helpers::withdraw(handle_slot const& file) noexcept {
    auto const first_in = [&](file_queue const& queue) {
        io_operation* op = queue.first();
        while (op != nullptr && slot(*op) != &file) {
            op = file_queue::after(*op);
        }
        return op;
    };
    if (forked()) {
        // Nobody else is here; a helper that stayed behind may have had the mutex.
        for (file_queue* const queue : {&queued_, &running_, &over_}) {
            if (io_operation* const op = first_in(*queue)) {
                queue->erase(*op);
                stage_of(*op) = stage::none;
                --slot(*op)->in_flight;
                set_outcome(*op, platform::failed_with(std::errc::operation_canceled));
                return op;
            }
        }
        return nullptr;
    }
    std::unique_lock locked(mutex_);
    if (io_operation* const op = first_in(queued_)) {
        take_out(*op);
        set_outcome(*op, platform::failed_with(std::errc::operation_canceled));
        return op;
    }
    if (io_operation* const op = first_in(running_)) {
        await_over(locked, *op);
    }
    io_operation* const op = first_in(over_);
    if (op != nullptr) {
        take_out(*op);
    }
    return op;
}

}  // namespace plumb
