// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/executor.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace networking_ts {

/// Makes of a completion token what an initiating function returns, and the handler that the operation calls.
/// This is for tokens that are handlers themselves; others specialise it.
template <class Token, class Signature>
struct async_result {
    /// @param start  called with the handler and `args`: begins the operation, which calls the handler later
    template <class Initiation, class... Args>
    static void initiate(Initiation start, Token handler, Args... args) {
        start(std::move(handler), std::move(args)...);
    }
};

template <class Signature, class Token, class Initiation, class... Args>
decltype(auto) async_initiate(Initiation start, Token&& token, Args... args) {
    return async_result<std::decay_t<Token>, Signature>::initiate(
        std::move(start), std::forward<Token>(token), std::move(args)...);
}

/// A handler of a composed operation, which leads to the one of the user and has its associations.
template <class Handler>
concept leads_on = requires(Handler const& h) { h.next(); };

/// The executor that a handler is called on: its own, else `other`.
template <class Handler, plumb::executor Executor>
auto get_associated_executor(Handler const& handler, Executor const& other) noexcept {
    if constexpr (leads_on<Handler>) {
        return get_associated_executor(handler.next(), other);
    } else if constexpr (requires { typename Handler::executor_type; }) {
        return handler.get_executor();
    } else {
        return other;
    }
}
template <class Handler, plumb::executor Executor>
using associated_executor_t = decltype(get_associated_executor(std::declval<Handler const&>(),
                                                               std::declval<Executor const&>()));

class operation_slot;

/// Where an operation is known to who may cancel it alone; null where nobody wants to.
template <class Handler>
operation_slot* get_associated_slot(Handler const& handler) noexcept {
    if constexpr (leads_on<Handler>) {
        return get_associated_slot(handler.next());
    } else if constexpr (requires {
                             { handler.slot() } -> std::same_as<operation_slot*>;
                         }) {
        return handler.slot();
    } else {
        return nullptr;
    }
}

}  // namespace networking_ts
