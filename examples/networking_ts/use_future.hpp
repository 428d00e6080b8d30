// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_result.hpp"

#include <exception>
#include <future>
#include <system_error>
#include <type_traits>
#include <utility>

namespace networking_ts {

/// The token that makes an initiating function return a `std::future`. Don't wait for it on the thread that runs the
/// context.
struct use_future_t {};
inline constexpr use_future_t use_future{};

/// Keeps the promise of a `T` when it is called; destroyed uncalled, it breaks it.
template <class T>
class promising_handler {
public:
    [[nodiscard]] std::future<T> get_future() { return promise_.get_future(); }

    template <class... Value>
    void operator()(std::error_code error, Value&&... value) {
        if (error) {
            promise_.set_exception(std::make_exception_ptr(std::system_error(error)));
        } else {
            promise_.set_value(std::forward<Value>(value)...);
        }
    }
    void operator()() { promise_.set_value(); }

private:
    std::promise<T> promise_;
};

template <class T>
struct async_result_as_future {
    template <class Initiation, class... Args>
    static std::future<T> initiate(Initiation start, use_future_t, Args... args) {
        promising_handler<T> handler;
        auto future = handler.get_future();
        start(std::move(handler), std::move(args)...);
        return future;
    }
};
template <>
struct async_result<use_future_t, void()> : async_result_as_future<void> {};
template <>
struct async_result<use_future_t, void(std::error_code)> : async_result_as_future<void> {};
template <class T>
struct async_result<use_future_t, void(std::error_code, T)> : async_result_as_future<T> {};

}  // namespace networking_ts
