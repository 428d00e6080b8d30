// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffers.hpp>
#include <plumb/base/deadline.hpp>
#include <plumb/base/io_request.hpp>
#include <plumb/base/io_result.hpp>
#include <plumb/handle/barrier_kind.hpp>
#include <plumb/handle/handle.hpp>

#include <chrono>

namespace plumb {

class async_barrier;
class async_read;
class async_write;
template <class Sender>
class io_awaitable;

/// A handle that bytes are read from and written to.
///
/// Blocking i/o moves at least one byte, then returns what was moved. `try_` forms never wait; `_for` and `_until`
/// forms wait within a limit; all return the result itself with `timed_out` at the limit.
/// `co_` forms take the same arguments and are awaited; they don't suspend when the i/o completes at once.
/// Threads: one reader and one writer at a time. Source: D2052R0 4.1, 4.2.
class io_handle : public handle {
public:
    using buffer_type = buffer;
    using const_buffer_type = const_buffer;
    using buffers_type = buffers;
    using const_buffers_type = const_buffers;

    /// Reads at least one byte, or fails at the deadline.
    /// @param request  where to put the bytes; pipes and sockets ignore the offset, see `seekable_handle` for files
    /// @param limit    relative (ns, steady) or absolute; zero never waits
    /// @return the buffers filled; 0 bytes at the end of the stream, and at once for an empty request
    /// Errors: timed_out, what read(2) gives; not_supported for files with a deadline, which only asynchronous forms
    /// keep. Allocates: never.
    io_result<buffers> read(io_request<buffers> request, deadline limit = {}) noexcept;

    /// Writes at least one byte, or fails at the deadline. As `read`. Never raises SIGPIPE.
    /// @return the buffers written, which may be the first part of those given
    io_result<const_buffers> write(io_request<const_buffers> request, deadline limit = {}) noexcept;

    /// Waits until what was written is safe in the file.
    /// Pipes and sockets keep order and store nothing: there it is over at once.
    /// @param request  which bytes matter; empty for all. `nowait_data_only` keeps to them, others may do more
    /// @return the buffers of the request
    /// Errors: what fsync(2) gives, once; not_supported for files with a deadline. Allocates: never.
    io_result<const_buffers> barrier(io_request<const_buffers> request = {},
                                     barrier_kind kind = barrier_kind::wait_data_only,
                                     deadline limit = {}) noexcept;

    io_result<buffers> try_read(io_request<buffers> request) noexcept {
        return read(request, std::chrono::nanoseconds(0));
    }
    io_result<const_buffers> try_write(io_request<const_buffers> request) noexcept {
        return write(request, std::chrono::nanoseconds(0));
    }
    io_result<const_buffers>
    try_barrier(io_request<const_buffers> request = {},
                barrier_kind kind = barrier_kind::wait_data_only) noexcept {
        return barrier(request, kind, std::chrono::nanoseconds(0));
    }

    template <class Rep, class Period>
    io_result<buffers> try_read_for(io_request<buffers> request,
                                    std::chrono::duration<Rep, Period> const& limit) noexcept {
        return read(request, limit);
    }
    template <class Rep, class Period>
    io_result<const_buffers>
    try_write_for(io_request<const_buffers> request,
                  std::chrono::duration<Rep, Period> const& limit) noexcept {
        return write(request, limit);
    }
    template <class Rep, class Period>
    io_result<const_buffers>
    try_barrier_for(io_request<const_buffers> request, barrier_kind kind,
                    std::chrono::duration<Rep, Period> const& limit) noexcept {
        return barrier(request, kind, limit);
    }

    template <class Clock, class Duration>
    io_result<buffers>
    try_read_until(io_request<buffers> request,
                   std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return read(request, limit);
    }
    template <class Clock, class Duration>
    io_result<const_buffers>
    try_write_until(io_request<const_buffers> request,
                    std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return write(request, limit);
    }
    template <class Clock, class Duration>
    io_result<const_buffers>
    try_barrier_until(io_request<const_buffers> request, barrier_kind kind,
                      std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return barrier(request, kind, limit);
    }

    /// `co_await h.co_read(request)` gives what `read` returns. Defined in <plumb/io/async_read.hpp>.
    /// Cancel-safe: yes, no byte is lost.
    io_awaitable<async_read> co_read(io_request<buffers> request, deadline limit = {}) noexcept;
    /// `co_await h.co_write(request)` gives what `write` returns. Defined in <plumb/io/async_write.hpp>.
    io_awaitable<async_write> co_write(io_request<const_buffers> request,
                                       deadline limit = {}) noexcept;
    /// `co_await h.co_barrier()` gives what `barrier` returns. Defined in <plumb/io/async_barrier.hpp>.
    io_awaitable<async_barrier> co_barrier(io_request<const_buffers> request = {},
                                           barrier_kind kind = barrier_kind::wait_data_only,
                                           deadline limit = {}) noexcept;

protected:
    using handle::handle;
    io_handle(io_handle&&) noexcept = default;
    io_handle& operator=(io_handle&&) noexcept = default;
    ~io_handle() = default;
};

}  // namespace plumb
