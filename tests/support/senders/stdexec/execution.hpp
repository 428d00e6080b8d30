// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <functional>
#include <list>
#include <mutex>
#include <type_traits>
#include <utility>

// Stands in for stdexec in the tests of `plumb/task/execution.hpp` where that isn't installed: as much of the names and
// the rules of std::execution as the header uses, and a few senders. No part of the library.
namespace stdexec {

struct sender_t {};
struct receiver_t {};
struct operation_state_t {};
struct scheduler_t {};

template <class R>
concept receiver =
    std::derived_from<typename std::remove_cvref_t<R>::receiver_concept, receiver_t> &&
    std::is_nothrow_move_constructible_v<std::remove_cvref_t<R>>;
template <class S>
concept sender = std::derived_from<typename std::remove_cvref_t<S>::sender_concept, sender_t> &&
                 std::move_constructible<std::remove_cvref_t<S>>;

struct set_value_t {
    template <class R, class... V>
    void operator()(R&& r, V&&... v) const noexcept {
        static_assert(noexcept(std::forward<R>(r).set_value(std::forward<V>(v)...)));
        std::forward<R>(r).set_value(std::forward<V>(v)...);
    }
};
struct set_error_t {
    template <class R, class E>
    void operator()(R&& r, E&& e) const noexcept {
        static_assert(noexcept(std::forward<R>(r).set_error(std::forward<E>(e))));
        std::forward<R>(r).set_error(std::forward<E>(e));
    }
};
struct set_stopped_t {
    template <class R>
    void operator()(R&& r) const noexcept {
        static_assert(noexcept(std::forward<R>(r).set_stopped()));
        std::forward<R>(r).set_stopped();
    }
};
inline constexpr set_value_t set_value{};
inline constexpr set_error_t set_error{};
inline constexpr set_stopped_t set_stopped{};

template <class... Signatures>
struct completion_signatures {};

// Stop tokens.

class inplace_stop_source;
template <class F>
class inplace_stop_callback;

class inplace_stop_token {
public:
    inplace_stop_token() noexcept = default;
    template <class F>
    using callback_type = inplace_stop_callback<F>;
    [[nodiscard]] inline bool stop_requested() const noexcept;
    [[nodiscard]] bool stop_possible() const noexcept { return source_ != nullptr; }
    friend bool operator==(inplace_stop_token const&, inplace_stop_token const&) = default;

private:
    friend inplace_stop_source;
    template <class F>
    friend class inplace_stop_callback;
    explicit inplace_stop_token(inplace_stop_source const* s) noexcept : source_(s) {}
    inplace_stop_source const* source_ = nullptr;
};

/// Calls what is registered under a recursive lock: slow, but it keeps the promises.
class inplace_stop_source {
public:
    inplace_stop_source() = default;
    inplace_stop_source(inplace_stop_source const&) = delete;
    [[nodiscard]] inplace_stop_token get_token() const noexcept { return inplace_stop_token(this); }
    [[nodiscard]] bool stop_requested() const noexcept {
        std::scoped_lock const locked(mutex_);
        return requested_;
    }
    bool request_stop() noexcept {
        std::scoped_lock const locked(mutex_);
        if (std::exchange(requested_, true)) {
            return false;
        }
        while (!callbacks_.empty()) {
            auto const call = *callbacks_.front();
            callbacks_.pop_front();
            call();
        }
        return true;
    }

private:
    template <class F>
    friend class inplace_stop_callback;
    mutable std::recursive_mutex mutex_;
    mutable std::list<std::function<void()> const*> callbacks_;
    bool requested_ = false;
};

bool inplace_stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}

template <class F>
class inplace_stop_callback {
public:
    inplace_stop_callback(inplace_stop_token token, F f) : call_(std::move(f)), of_(token.source_) {
        if (of_ != nullptr) {
            std::scoped_lock const locked(of_->mutex_);
            if (of_->requested_) {
                call_();
            } else {
                of_->callbacks_.push_back(&call_);
            }
        }
    }
    inplace_stop_callback(inplace_stop_callback const&) = delete;
    ~inplace_stop_callback() {
        if (of_ != nullptr) {
            std::scoped_lock const locked(of_->mutex_);
            of_->callbacks_.remove(&call_);
        }
    }

private:
    std::function<void()> const call_;
    inplace_stop_source const* of_;
};

/// Never stops.
class never_stop_token {
public:
    template <class F>
    struct callback_type {
        callback_type(never_stop_token, F) noexcept {}
    };
    [[nodiscard]] static constexpr bool stop_requested() noexcept { return false; }
    [[nodiscard]] static constexpr bool stop_possible() noexcept { return false; }
    friend bool operator==(never_stop_token, never_stop_token) = default;
};

template <class Token, class F>
using stop_callback_for_t = Token::template callback_type<F>;

// Environments.

struct env_of_nothing {};
struct get_env_t {
    template <class T>
    auto operator()(T const& t) const noexcept {
        if constexpr (requires { t.get_env(); }) {
            return t.get_env();
        } else {
            return env_of_nothing();
        }
    }
};
inline constexpr get_env_t get_env{};

struct get_stop_token_t {
    template <class Env>
    auto operator()(Env const& env) const noexcept {
        if constexpr (requires { env.query(get_stop_token_t()); }) {
            return env.query(get_stop_token_t());
        } else {
            return never_stop_token();
        }
    }
};
struct get_scheduler_t {
    template <class Env>
    auto operator()(Env const& env) const noexcept {
        return env.query(get_scheduler_t());
    }
};
template <class Tag>
struct get_completion_scheduler_t {
    template <class Env>
    auto operator()(Env const& env) const noexcept {
        return env.query(get_completion_scheduler_t());
    }
};
inline constexpr get_stop_token_t get_stop_token{};
inline constexpr get_scheduler_t get_scheduler{};
template <class Tag>
inline constexpr get_completion_scheduler_t<Tag> get_completion_scheduler{};

template <class T>
using env_of_t = decltype(get_env(std::declval<T>()));
template <class T>
using stop_token_of_t = std::remove_cvref_t<decltype(get_stop_token(std::declval<T>()))>;

// Operations.

struct connect_t {
    template <sender S, receiver R>
    auto operator()(S&& s, R r) const {
        return std::forward<S>(s).connect(std::move(r));
    }
};
inline constexpr connect_t connect{};
template <class S, class R>
using connect_result_t = decltype(connect(std::declval<S>(), std::declval<R>()));

struct start_t {
    template <class O>
    void operator()(O& o) const noexcept {
        static_assert(noexcept(o.start()));
        static_assert(std::derived_from<typename O::operation_state_concept, operation_state_t>);
        o.start();
    }
};
inline constexpr start_t start{};

struct schedule_t {
    template <class S>
    auto operator()(S&& s) const noexcept {
        return std::forward<S>(s).schedule();
    }
};
inline constexpr schedule_t schedule{};

template <class S>
concept scheduler =
    std::derived_from<typename std::remove_cvref_t<S>::scheduler_concept, scheduler_t> &&
    std::equality_comparable<std::remove_cvref_t<S>> && requires(S&& s) {
        { schedule(s) } -> sender;
        {
            get_completion_scheduler<set_value_t>(get_env(schedule(s)))
        } -> std::same_as<std::remove_cvref_t<S>>;
    };

// What a sender completes with.

template <class S, class Env>
consteval auto get_completion_signatures() {
    return std::remove_cvref_t<S>::template get_completion_signatures<S, Env>();
}

template <template <class...> class Tuple, template <class...> class Variant, class... Found>
struct gathered {
    static auto from(completion_signatures<>) -> Variant<Found...>;
    template <class... V, class... Rest>
    static auto from(completion_signatures<set_value_t(V...), Rest...>)
        -> decltype(gathered<Tuple, Variant, Found..., Tuple<V...>>::from(
            completion_signatures<Rest...>()));
    template <class Tag, class... V, class... Rest>
        requires(!std::same_as<Tag, set_value_t>)
    static auto from(completion_signatures<Tag(V...), Rest...>)
        -> decltype(gathered<Tuple, Variant, Found...>::from(completion_signatures<Rest...>()));
};
template <class S, class Env, template <class...> class Tuple, template <class...> class Variant>
using value_types_of_t =
    decltype(gathered<Tuple, Variant>::from(get_completion_signatures<S, Env>()));

}  // namespace stdexec
