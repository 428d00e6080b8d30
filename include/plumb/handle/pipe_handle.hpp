// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/io_handle.hpp>
#include <plumb/handle/path_handle.hpp>

#include <cstdint>

namespace plumb {

/// One end of a pipe. From its first asynchronous use over epoll, or on a ring its first read that was filled, until
/// its release this end is marked as never blocking, which makes for the cheapest reads; the other end is not. One that was adopted never is, as other
/// processes may share it; nor is a clone, but it shares the mark of the handle that it was cloned from.
/// Source: D2052R0 4.1, P1031 pipe_handle.
class pipe_handle : public io_handle {
public:
    struct ends;

    /// Which end of a pipe the handle is.
    enum class mode : std::uint8_t { read, write };
    /// Whether a named pipe exists.
    enum class creation : std::uint8_t {
        open_existing,
        /// Fails with file_exists where the name is taken.
        create_new,
        if_needed,
    };

    /// A closed handle.
    pipe_handle() noexcept : io_handle(handle_kind::pipe) {}

    /// Makes an anonymous pipe.
    /// Errors: what pipe(2) gives.
    static result<ends> anonymous_pipe() noexcept;

    /// Opens an end of a named pipe, which stays when it is closed: whoever chose the name removes it.
    /// The name is looked up once: what is opened is the pipe that was found there, or nothing.
    /// To open the reading end never waits; a pipe that had no writer since isn't at its end, so that the first read
    /// waits for one. To open the writing end waits for a reader, without which there is nobody to write to.
    /// @param base   what `path` is relative to; `{}` for the working directory
    /// @param limit  how long to wait for a reader, kept to within 10 ms; zero never waits, and without end the wait
    ///               is the system's own
    /// Errors: timed_out; wrong_kind where the name is no pipe's; `zero_in_path`; what mkfifo(3) and open(2) give.
    static result<pipe_handle> named_pipe(path_handle const& base, path_view path, mode end,
                                          creation existence = creation::open_existing,
                                          deadline limit = {}) noexcept;

    /// Takes ownership of an end of a pipe, whose flags are not changed.
    /// Errors: wrong_kind, and what fstat(2) gives; the native handle then still is the caller's.
    static result<pipe_handle> adopt(native_handle native) noexcept;

    /// @return another handle of the same end: a writer's reader sees the end when both are closed
    [[nodiscard]] result<pipe_handle> clone() const noexcept;

    /// Opens an end of the same pipe again, also when it has no name. Shares nothing but the pipe.
    /// Errors: no_such_device_or_address for the writing end of a named pipe that nobody reads; what open(2) gives.
    [[nodiscard]] result<pipe_handle> reopen(mode end) const noexcept;

private:
    explicit pipe_handle(native_handle native, handle_kind kind = handle_kind::pipe) noexcept
        : io_handle(kind, native) {}
};

struct pipe_handle::ends {
    pipe_handle reader;
    pipe_handle writer;
};

}  // namespace plumb
