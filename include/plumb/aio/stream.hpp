// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/aio/bytes.hpp>
#include <plumb/base/assert.hpp>
#include <plumb/base/buffer.hpp>
#include <plumb/base/deadline.hpp>
#include <plumb/exec/pooled_memory.hpp>
#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/task/task.hpp>

#include <cstddef>
#include <string_view>

namespace plumb::aio {

class read_awaitable;
class write_awaitable;

/// A connection, in the manner of asyncio's StreamReader and StreamWriter.
///
/// Everything here throws on failure: `std::system_error` with what the system gave, `timed_out` at the deadline, which
/// counts for the whole of it, `operation_canceled` when the task is stopped. Holds no memory while it waits; keeps what it read too much.
/// Move-only; don't move it while an operation is in flight. Destroying it closes the connection.
/// Threads: its loop's; one reader and one writer at a time. Source: asyncio for C++20.
class stream {
public:
    explicit stream(stream_socket_handle socket) noexcept : socket_(std::move(socket)) {}

    /// Reads what is there, at most `most` bytes and at most `pooled_memory_limit`; waits for at least one. Empty at
    /// the end of the stream.
    /// Cancel-safe: yes, no byte is lost.
    [[nodiscard]] read_awaitable read(std::size_t most, deadline limit = {}) noexcept;

    /// Reads to the end of the stream.
    /// @param most  throws `error::limit_exceeded` where more comes
    [[nodiscard]] task<bytes> read(deadline limit = {}, std::size_t most = default_limit);

    /// Reads `count` bytes. Throws `incomplete` where the stream ends before, or at the deadline; what came stays in
    /// the stream and can be read.
    [[nodiscard]] task<bytes> read_exactly(std::size_t count, deadline limit = {});

    /// Reads up to and with `separator`. Throws `incomplete` where the stream ends before, and `error::limit_exceeded`
    /// where it isn't in the first `most` bytes; what came stays in the stream.
    /// @param separator  not empty; must live until this ends
    [[nodiscard]] task<bytes> read_until(std::string_view separator, deadline limit = {},
                                         std::size_t most = default_limit);

    /// Writes all of `data`, which must live until this ends. Throws `incomplete` after a part of it was written.
    [[nodiscard]] write_awaitable write(const_buffer data, deadline limit = {}) noexcept;

    /// Tells the peer that nothing more will be written.
    void write_eof();

    /// Closes the connection; operations in flight throw `operation_canceled`.
    void close() noexcept { (void)socket_.close(); }
    [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }

    [[nodiscard]] endpoint local() const { return socket_.local().value(); }
    [[nodiscard]] endpoint peer() const { return socket_.peer().value(); }
    [[nodiscard]] stream_socket_handle& socket() noexcept { return socket_; }

    static constexpr std::size_t default_limit = std::size_t{16} * 1024 * 1024;

private:
    friend read_awaitable;

    /// A deadline that can be used for one part after another.
    static deadline for_all_of_it(deadline limit) noexcept;
    task<std::size_t> fill(std::size_t room, deadline limit);
    [[nodiscard]] bytes take(std::size_t count);

    stream_socket_handle socket_;
    bytes kept_;  // what was read beyond what was asked for
};

/// `co_await s.read(n)`: gives `bytes`.
class [[nodiscard]] read_awaitable {
public:
    [[nodiscard]] bool await_ready() const noexcept { return !from_.kept_.empty(); }
    bool await_suspend(std::coroutine_handle<> h, io_env const& env) noexcept {
        return read_.await_suspend(h, env);
    }
    static constexpr auto waits_for = wait_kind::read;
    static constexpr bool takes_env_from_promise = true;
    template <carries_env Promise>
    bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
        return await_suspend(h, h.promise().env());
    }
    bytes await_resume() {
        if (!from_.kept_.empty()) [[unlikely]] {
            return from_.take(most_);
        }
        auto got = read_.await_resume();
        if (!got) [[unlikely]] {
            throw_error(got.error(), "stream::read");
        }
        return std::move(*got);
    }

private:
    friend stream;
    read_awaitable(stream& from, std::size_t most, deadline limit) noexcept
        : from_(from), most_(most), read_(async_read_pooled(from.socket_, most, limit)) {}

    stream& from_;
    std::size_t most_;
    io_awaitable<async_read_pooled> read_;
};

/// `co_await s.write(data)`: writes all of it, going on by itself after a part.
class [[nodiscard]] write_awaitable : private async_write::operation {
public:
    write_awaitable(write_awaitable const&) = delete;
    write_awaitable& operator=(write_awaitable const&) = delete;

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h, io_env const& env) noexcept {
        auto const status = go_on(start_awaited<action::write>(h, env));
        if (status == io_status::completed) {
            return false;
        }
        require(
            status == io_status::pending,
            "a stream was written to in an io_context for several threads: write to its handle");
        tell(&write_awaitable::deliver);
        return true;
    }
    static constexpr auto waits_for = wait_kind::write;
    static constexpr bool takes_env_from_promise = true;
    template <carries_env Promise>
    bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
        return await_suspend(h, h.promise().env());
    }
    void await_resume() const {
        assume_done();
        if (outcome() < 0) [[unlikely]] {
            fail();
        }
    }

private:
    friend stream;
    write_awaitable(stream_socket_handle& to, const_buffer data, deadline limit) noexcept
        : operation(async_write(to, data, limit), nullptr), left_(data.size()), all_(data.size()) {}

    /// Goes on while parts are written at once.
    io_status go_on(io_status status) noexcept {
        while (status == io_status::completed && outcome() >= 0 &&
               (left_ -= static_cast<std::size_t>(outcome())) != 0) [[unlikely]] {
            status = write_rest();
        }
        return status;
    }
    io_status write_rest() noexcept;
    static void deliver(io_operation&) noexcept;
    [[noreturn]] void fail() const;

    std::size_t left_;
    std::size_t all_;
};

inline read_awaitable stream::read(std::size_t most, deadline limit) noexcept {
    return read_awaitable(*this, most < pooled_memory_limit ? most : pooled_memory_limit, limit);
}
inline write_awaitable stream::write(const_buffer data, deadline limit) noexcept {
    return write_awaitable(socket_, data, limit.is_infinite() ? limit : for_all_of_it(limit));
}

}  // namespace plumb::aio
