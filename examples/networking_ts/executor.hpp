// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_result.hpp"
#include "networking_ts/handler_work.hpp"

#include <plumb/exec/executor.hpp>
#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/strand.hpp>

#include <utility>

namespace networking_ts {

/// Something with an executor: an `io_context`, a socket, a timer.
template <class C>
concept execution_context = requires(C& c) {
    { c.get_executor() } -> plumb::executor;
};

/// Never runs two handlers at once, and runs them in the order in which they were posted.
template <plumb::executor E>
using strand = plumb::strand<E>;

template <plumb::executor E>
strand<E> make_strand(E const& inner) {
    return strand<E>(inner);
}
template <execution_context C>
auto make_strand(C& c) {
    return networking_ts::make_strand(c.get_executor());
}

/// While it lives, the context behind an executor goes on running.
template <plumb::executor E>
class executor_work_guard {
public:
    using executor_type = E;

    explicit executor_work_guard(E const& e) : executor_(e) {
        plumb::executor_ref(executor_).work_started();
    }
    executor_work_guard(executor_work_guard const& other)
        : executor_(other.executor_), owns_(other.owns_) {
        if (owns_) {
            plumb::executor_ref(executor_).work_started();
        }
    }
    executor_work_guard(executor_work_guard&& other) noexcept
        : executor_(other.executor_), owns_(std::exchange(other.owns_, false)) {}
    executor_work_guard& operator=(executor_work_guard const&) = delete;
    ~executor_work_guard() { reset(); }

    [[nodiscard]] E get_executor() const noexcept { return executor_; }
    [[nodiscard]] bool owns_work() const noexcept { return owns_; }
    void reset() noexcept {
        if (std::exchange(owns_, false)) {
            plumb::executor_ref(executor_).work_finished();
        }
    }

private:
    E executor_;
    bool owns_ = true;
};

template <plumb::executor E>
executor_work_guard<E> make_work_guard(E const& e) {
    return executor_work_guard<E>(e);
}
template <execution_context C>
auto make_work_guard(C& c) {
    return networking_ts::make_work_guard(c.get_executor());
}

/// A token, or a handler, with an executor that it is called on.
template <class Token, plumb::executor E>
class executor_binder {
public:
    using executor_type = E;

    executor_binder(E const& e, Token token) : executor_(e), token_(std::move(token)) {}

    [[nodiscard]] E get_executor() const noexcept { return executor_; }
    [[nodiscard]] Token& get() noexcept { return token_; }
    [[nodiscard]] operation_slot* slot() const noexcept { return get_associated_slot(token_); }

    template <class... Args>
    void operator()(Args&&... args) {
        token_(std::forward<Args>(args)...);
    }

private:
    E executor_;
    Token token_;
};

template <plumb::executor E, class Token>
executor_binder<std::decay_t<Token>, E> bind_executor(E const& e, Token&& token) {
    return {e, std::forward<Token>(token)};
}

template <class Token, class E, class Signature>
struct async_result<executor_binder<Token, E>, Signature> {
    template <class Initiation, class... Args>
    static decltype(auto) initiate(Initiation start, executor_binder<Token, E> bound,
                                   Args... args) {
        return async_initiate<Signature>(
            [start = std::move(start), e = bound.get_executor()](auto handler,
                                                                 auto... rest) mutable {
                start(bind_executor(e, std::move(handler)), std::move(rest)...);
            },
            std::move(bound.get()), std::move(args)...);
    }
};

/// Has an executor call a function later. Allocates one block from plumb's pool.
template <plumb::executor E, class F>
void post_work(E const& e, F function) {
    e.post(new handler_work<F>(std::move(function)));
}

/// Has a handler called later, on its own executor or else on `e`; never inside of this.
template <plumb::executor E, class Token>
decltype(auto) post(E const& e, Token&& token) {
    return async_initiate<void()>(
        [](auto handler, E const& other) {
            auto const where = get_associated_executor(handler, other);
            post_work(where, std::move(handler));
        },
        std::forward<Token>(token), e);
}

/// The same; inside of the executor the handler is called at once.
template <plumb::executor E, class Token>
decltype(auto) dispatch(E const& e, Token&& token) {
    return async_initiate<void()>(
        [](auto handler, E const& other) {
            auto const where = get_associated_executor(handler, other);
            if (plumb::executor_ref(where).running_in_this_thread()) {
                handler();
            } else {
                post_work(where, std::move(handler));
            }
        },
        std::forward<Token>(token), e);
}

/// As `post`: plumb runs what is posted from inside without synchronisation anyhow.
template <plumb::executor E, class Token>
decltype(auto) defer(E const& e, Token&& token) {
    return networking_ts::post(e, std::forward<Token>(token));
}

template <execution_context C, class Token>
decltype(auto) post(C& c, Token&& token) {
    return networking_ts::post(c.get_executor(), std::forward<Token>(token));
}
template <execution_context C, class Token>
decltype(auto) dispatch(C& c, Token&& token) {
    return networking_ts::dispatch(c.get_executor(), std::forward<Token>(token));
}
template <execution_context C, class Token>
decltype(auto) defer(C& c, Token&& token) {
    return networking_ts::defer(c.get_executor(), std::forward<Token>(token));
}

}  // namespace networking_ts
