// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>

namespace plumb {

/// One end of a pipe. From its first asynchronous use over epoll until its release this end is marked as never
/// blocking, which makes for the cheapest reads; the other end is not.
/// Source: D2052R0 4.1, P1031 pipe_handle.
class pipe_handle : public io_handle {
public:
    struct ends;

    /// A closed handle.
    pipe_handle() noexcept : io_handle(handle_kind::pipe) {}

    /// Makes an anonymous pipe.
    /// Errors: what pipe(2) gives.
    static result<ends> anonymous_pipe() noexcept;

private:
    explicit pipe_handle(native_handle native) noexcept : io_handle(handle_kind::pipe, native) {}
};

struct pipe_handle::ends {
    pipe_handle reader;
    pipe_handle writer;
};

}  // namespace plumb
