// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_barrier.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_send.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/operation_relay.hpp>

#include <chrono>
#include <utility>

namespace plumb {

/// The same sender, whose connection any thread may start and cancel while another drives the multiplexer.
///
/// Its receiver is called by the thread that drives. An operation that is started elsewhere than inside the
/// multiplexer begins when that thread comes by, in `run` or any function that completes something; it is woken for it.
/// Where threads share a handle that has no multiplexer yet, choose one by `set_multiplexer` before.
/// The handle stays in place until the operation has begun. `poll`, `reset`, and destroying what is in flight stay with
/// the thread that drives; nobody may call `cancel` once `set_done` was called, or the multiplexer has ended;
/// `completed` only tells that the receiver is being told. Cost: an atomic operation or two more; a wake-up where the other thread sleeps.
/// Allocates: never. Source: D2052R0 4.3.
template <class Sender>
class atomic_sender : public Sender {
public:
    using Sender::Sender;

    class operation : public Sender::operation {
    protected:
        operation(atomic_sender const& sender, io_operation::deliver_function deliver) noexcept
            : Sender::operation(sender, &operation::meet_end), deliver_(deliver) {}

        io_status start_queued() noexcept { return relay_.start(*this); }
        io_status poll_now() noexcept {
            relay_.fetch();
            return relay_.ended() ? io_status::completed : Sender::operation::poll_now();
        }
        void rearm() noexcept {
            Sender::operation::rearm();
            relay_.reset();
        }

    public:
        void cancel() noexcept { relay_.cancel(); }
        [[nodiscard]] bool started() const noexcept { return relay_.started(); }
        [[nodiscard]] bool completed() const noexcept { return relay_.ended(); }

    private:
        static void meet_end(io_operation& over) noexcept {
            auto& self = static_cast<operation&>(static_cast<typename Sender::operation&>(over));
            if (self.relay_.end()) {
                self.deliver_(over);
            }
        }

        io_operation::deliver_function deliver_;
        operation_relay relay_;
    };
};

class atomic_async_read : public atomic_sender<async_read> {
public:
    using atomic_sender::atomic_sender;

    static atomic_async_read try_async_read(io_handle& target,
                                            io_request<buffers> request) noexcept {
        return {target, request, std::chrono::nanoseconds(0)};
    }
    template <class Rep, class Period>
    static atomic_async_read
    try_async_read_for(io_handle& target, io_request<buffers> request,
                       std::chrono::duration<Rep, Period> const& limit) noexcept {
        return {target, request, limit};
    }
    template <class Clock, class Duration>
    static atomic_async_read
    try_async_read_until(io_handle& target, io_request<buffers> request,
                         std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return {target, request, limit};
    }
};

class atomic_async_write : public atomic_sender<async_write> {
public:
    using atomic_sender::atomic_sender;

    static atomic_async_write try_async_write(io_handle& target,
                                              io_request<const_buffers> request) noexcept {
        return {target, request, std::chrono::nanoseconds(0)};
    }
    template <class Rep, class Period>
    static atomic_async_write
    try_async_write_for(io_handle& target, io_request<const_buffers> request,
                        std::chrono::duration<Rep, Period> const& limit) noexcept {
        return {target, request, limit};
    }
    template <class Clock, class Duration>
    static atomic_async_write
    try_async_write_until(io_handle& target, io_request<const_buffers> request,
                          std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return {target, request, limit};
    }
};

class atomic_async_barrier : public atomic_sender<async_barrier> {
public:
    using atomic_sender::atomic_sender;

    static atomic_async_barrier
    try_async_barrier(io_handle& target, io_request<const_buffers> request = {},
                      barrier_kind kind = barrier_kind::wait_data_only) noexcept {
        return atomic_async_barrier(target, request, kind, std::chrono::nanoseconds(0));
    }
    template <class Rep, class Period>
    static atomic_async_barrier
    try_async_barrier_for(io_handle& target, io_request<const_buffers> request, barrier_kind kind,
                          std::chrono::duration<Rep, Period> const& limit) noexcept {
        return atomic_async_barrier(target, request, kind, limit);
    }
    template <class Clock, class Duration>
    static atomic_async_barrier
    try_async_barrier_until(io_handle& target, io_request<const_buffers> request, barrier_kind kind,
                            std::chrono::time_point<Clock, Duration> const& limit) noexcept {
        return atomic_async_barrier(target, request, kind, limit);
    }
};

using atomic_async_accept = atomic_sender<async_accept>;
using atomic_async_connect = atomic_sender<async_connect>;
using atomic_async_receive = atomic_sender<async_receive>;
using atomic_async_send = atomic_sender<async_send>;
using atomic_async_wait = atomic_sender<async_wait>;

}  // namespace plumb
