// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"

#include <atomic>
#include <system_error>

namespace plumb::test {

/// While it lives, the n-th call to the seam's functions for i/o fails with io_error. A close that fails has closed all
/// the same. One at a time.
class failing_calls {
public:
    explicit failing_calls(int n) noexcept : table_(platform::os()) {
        inner_ = platform::os();
        left_ = n;
        using platform::seam;
        wrap<&seam::open_pipe, &seam::open_socket_pair, &seam::open_socket, &seam::bind,
             &seam::listen, &seam::accept, &seam::connect, &seam::connect_outcome,
             &seam::shutdown_write, &seam::set_option, &seam::local_endpoint, &seam::peer_endpoint,
             &seam::divides_stream, &seam::set_blocking, &seam::set_membership, &seam::read,
             &seam::read_waiting, &seam::write, &seam::send, &seam::receive, &seam::await_ready,
             &seam::open_clock_watch, &seam::open_poller, &seam::poller_add, &seam::poller_wait>();
        wrap<&seam::kind_of, &seam::is_blocking, &seam::make_pipe, &seam::open_file,
             &seam::reopen_file, &seam::duplicate, &seam::rename, &seam::unlink,
             &seam::describe_file, &seam::file_size, &seam::resize_file, &seam::deallocate,
             &seam::copy_range, &seam::lock_range, &seam::read_at, &seam::try_read_at,
             &seam::write_at, &seam::sync_file, &seam::map_file, &seam::remap_file>();
        table_.close = [](native_handle h) noexcept {
            auto const done = inner_.close(h);
            return --left_ == 0 ? platform::failed_with(std::errc::io_error) : done;
        };
        before_ = platform::replace_seam(&table_);
    }
    failing_calls(failing_calls const&) = delete;
    failing_calls& operator=(failing_calls const&) = delete;
    ~failing_calls() { platform::replace_seam(before_); }

    /// Whether there were that many calls.
    [[nodiscard]] bool failed() const noexcept { return left_ <= 0; }

private:
    template <auto Member>
    struct failing;

    template <auto... Members>
    void wrap() noexcept {
        ((table_.*Members = failing<Members>::call), ...);
    }

    static inline platform::seam inner_{};
    static inline std::atomic<int> left_ = 0;  // helper threads call, too

    platform::seam table_;
    platform::seam const* before_ = nullptr;
};

template <class... Args, platform::outcome (*platform::seam::*Member)(Args...) noexcept>
struct failing_calls::failing<Member> {
    static platform::outcome call(Args... args) noexcept {
        return --left_ == 0 ? platform::failed_with(std::errc::io_error)
                            : (inner_.*Member)(args...);
    }
};

}  // namespace plumb::test
