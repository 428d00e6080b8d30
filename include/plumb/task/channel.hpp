// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/error.hpp>
#include <plumb/base/result.hpp>
#include <plumb/task/wait_list.hpp>

#include <coroutine>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>

namespace plumb {

/// A queue of bounded length between coroutines, any number on both sides: who sends to a full one waits, and who
/// receives from an empty one. Each value goes to one receiver; each sender's values keep their order.
///
/// Closing it lets receivers have what is in it, and then tells them of the end; senders are told at once.
///
/// State, under `lock_`; of the waiters see `wait_list.hpp`: open -> closed. `size_` values are in the ring; receivers
/// wait only while it is empty, senders only while it is full. A value is moved by whoever makes it possible, under the
/// lock: from the sender into the ring or to a receiver that waits; so a cancelled sender has sent nothing and a cancelled
/// receiver was given nothing. What was given to a coroutine that is destroyed before it goes on is destroyed with it.
/// Threads: any. Allocates: when it is made.
template <class T>
class channel {
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                  "values are moved under a lock");

public:
    /// @param capacity  how many values it holds; 0 makes each sender wait for its receiver
    explicit channel(std::size_t capacity)
        : ring_(std::make_unique<std::optional<T>[]>(capacity)), capacity_(capacity) {}

    class [[nodiscard]] send_awaitable : private waiter {
    public:
        send_awaitable(channel& c, T& value) noexcept
            : waiter(c.senders_), channel_(c), value_(value) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            wait_list::granted to;
            return suspend(h, env, [&] { return take(to); });
        }
        [[nodiscard]] result<void> await_resume() const noexcept {
            if (!granted()) {
                return std::errc::operation_canceled;
            }
            return sent_ ? result<void>() : std::errc::broken_pipe;
        }

    private:
        friend channel;
        template <class... Cases>
        friend class select_awaitable;
        bool take(wait_list::granted& to) noexcept { return channel_.put(value_, sent_, to); }

        channel& channel_;
        T& value_;
        bool sent_ = false;
    };

    class [[nodiscard]] receive_awaitable : private waiter {
    public:
        explicit receive_awaitable(channel& c) noexcept : waiter(c.receivers_), channel_(c) {}

        [[nodiscard]] bool await_ready() const noexcept { return false; }
        bool await_suspend(awaiting h, io_env const& env) noexcept {
            wait_list::granted to;
            return suspend(h, env, [&] { return take(to); });
        }
        [[nodiscard]] result<T> await_resume() noexcept {
            if (!granted()) {
                return std::errc::operation_canceled;
            }
            return channel::received(value_);
        }

    private:
        friend channel;
        template <class... Cases>
        friend class select_awaitable;
        bool take(wait_list::granted& to) noexcept { return channel_.get(value_, to); }

        channel& channel_;
        std::optional<T> value_;
    };

    /// Awaits that the value is in the channel, or with its receiver. It is moved from only then.
    /// Errors: broken_pipe where it is closed; operation_canceled, also for a stop from before. Cancel-safe: yes.
    send_awaitable send(T&& value) noexcept { return send_awaitable(*this, value); }

    /// Awaits a value. Errors: end_of_stream where it is closed and empty; operation_canceled, also for a stop from
    /// before. Cancel-safe: yes.
    receive_awaitable receive() noexcept { return receive_awaitable(*this); }

    /// The same without waiting. Errors: broken_pipe; resource_unavailable_try_again where it is full.
    result<void> try_send(T&& value) noexcept {
        wait_list::granted to;
        std::scoped_lock const locked(lock_);
        bool sent = false;
        if (!put(value, sent, to)) {
            return std::errc::resource_unavailable_try_again;
        }
        return sent ? result<void>() : std::errc::broken_pipe;
    }

    /// The same without waiting. Errors: end_of_stream; resource_unavailable_try_again where it is empty.
    result<T> try_receive() noexcept {
        wait_list::granted to;
        std::scoped_lock const locked(lock_);
        std::optional<T> value;
        if (!get(value, to)) {
            return std::errc::resource_unavailable_try_again;
        }
        return received(value);
    }

    /// Nothing more can be sent. Senders that wait are told, and keep their values.
    void close() noexcept {
        wait_list::granted to;
        std::scoped_lock const locked(lock_);
        closed_ = true;
        receivers_.grant_all(to);
        senders_.grant_all(to);
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    /// How many values are in it.
    [[nodiscard]] std::size_t size() const noexcept {
        std::scoped_lock const locked(lock_);
        return size_;
    }
    [[nodiscard]] bool closed() const noexcept {
        std::scoped_lock const locked(lock_);
        return closed_;
    }

private:
    static result<T> received(std::optional<T>& value) noexcept {
        return value ? result<T>(std::move(*value)) : error::end_of_stream;
    }

    void push(T& value) noexcept {
        ring_[(first_ + size_++) % capacity_].emplace(std::move(value));
    }

    /// @return whether it is over; if so, `sent` tells how
    bool put(T& value, bool& sent, wait_list::granted& to) noexcept {
        if (closed_) {
            return true;
        }
        if (waiter* const first = receivers_.grant_first(to)) {
            static_cast<receive_awaitable&>(*first).value_.emplace(std::move(value));
        } else if (size_ != capacity_) {
            push(value);
        } else {
            return false;
        }
        sent = true;
        return true;
    }

    /// @return whether it is over: with a value, or at the end
    bool get(std::optional<T>& value, wait_list::granted& to) noexcept {
        if (size_ != 0) {
            value.emplace(std::move(*ring_[first_]));
            ring_[first_].reset();
            first_ = (first_ + 1) % capacity_;
            --size_;
        }
        if (waiter* const first = senders_.grant_first(to)) {
            auto& sender = static_cast<send_awaitable&>(*first);
            if (value) {
                push(sender.value_);
            } else {
                value.emplace(std::move(sender.value_));
            }
            sender.sent_ = true;
        }
        return value || closed_;
    }

    mutable brief_lock lock_;
    wait_list senders_{lock_, "channel (to send)"};
    wait_list receivers_{lock_, "channel (to receive)"};
    std::unique_ptr<std::optional<T>[]> const ring_;
    std::size_t const capacity_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
    bool closed_ = false;
};

}  // namespace plumb
