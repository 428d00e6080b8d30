// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/io_backend.hpp"
#include "platform/seam.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace plumb {

/// Threads that do the parts of operations on files; all are started when there first is something for them to do.
///
/// Stages of an operation, under the mutex: queued -> running (a helper has it) -> over -> none, or queued -> none where
/// it is cancelled. What runs can't be stopped: who wants its memory back waits. In a process that was forked off there
/// are no helpers: nothing waits for them there.
/// Threads: the driver's. Allocates: the threads, at the first start.
class io_backend::file_helpers {
public:
    explicit file_helpers(io_backend& of) noexcept : of_(of) {}
    file_helpers(file_helpers const&) = delete;
    file_helpers& operator=(file_helpers const&) = delete;

    /// Ends the helpers; nothing may be in flight. A process that was forked off leaves them as they are.
    struct ending {
        void operator()(file_helpers* of) const noexcept {
            if (of->started_ == 0 || !of->forked()) {
                delete of;
            }
        }
    };
    using owner = std::unique_ptr<file_helpers, ending>;

    /// @return minus EAGAIN: it is pending; another error where there is no thread to be had
    outcome start(io_operation& op) noexcept;
    /// Takes an operation out, if it is over. @return its outcome, else minus EAGAIN
    outcome poll(io_operation& op) noexcept;
    /// Takes it out, if it doesn't run. @return its outcome, else minus EAGAIN
    outcome cancel(io_operation& op) noexcept;
    /// Waits until it is over and takes it out. @return its outcome
    outcome await(io_operation& op) noexcept;

    /// Whether any is over, as far as is known here.
    [[nodiscard]] bool any_over() const noexcept { return any_over_.load(); }
    /// Takes one out that is over. @return null where there is none
    io_operation* take_over_one() noexcept;
    /// Takes one out that is on this file and cancels it; where it runs, waits. @return null where there is none
    io_operation* withdraw(handle_slot const& file) noexcept;

private:
    ~file_helpers();
    // So many calls that wait keep most devices busy.
    static constexpr std::size_t most = 4;

    [[nodiscard]] bool forked() const noexcept { return platform::os().process() != process_; }
    bool start_threads() noexcept;
    void help() noexcept;
    void take_out(io_operation& op) noexcept;
    void await_over(std::unique_lock<std::mutex>& locked, io_operation const& op) noexcept;

    io_backend& of_;
    std::mutex mutex_;
    std::condition_variable work_;  // there is something to do, or it is the end
    std::condition_variable done_;  // something that is waited for is over
    file_queue queued_;
    file_queue running_;
    file_queue over_;
    std::atomic<bool> any_over_{false};
    std::array<platform::thread_start, most> threads_;
    std::size_t started_ = 0;
    bool awaited_ = false;
    bool ended_ = false;
    std::int64_t process_ = 0;  // where the threads are
};

}  // namespace plumb
