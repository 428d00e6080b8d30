// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/error.hpp>
#include <plumb/base/result.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/task/wait_list.hpp>

#include <array>
#include <coroutine>
#include <cstddef>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace plumb {

/// A case of a `select` that is left out where `condition` is false: `only_if(open, c.receive())`.
template <class A>
struct only_if {
    only_if(bool c, A&& a) noexcept : condition(c), awaited(a) {}

    bool const condition;
    A& awaited;
};

/// See `select`.
template <class... A>
class [[nodiscard]] select_awaitable {
public:
    /// Which of them happened, by its index, with what it gives when it is awaited alone.
    using selected = std::variant<decltype(std::declval<A&>().await_resume())...>;

    explicit select_awaitable(only_if<A>... cases) noexcept : cases_(cases...) {}
    select_awaitable(select_awaitable const&) = delete;
    select_awaitable& operator=(select_awaitable const&) = delete;
    ~select_awaitable() {
        if (lead_ != nullptr) {
            lead_->part();
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(awaiting h, io_env const& env) noexcept {
        std::array<waiter*, sizeof...(A)> all;
        std::size_t count = 0;
        auto const add = [&](auto& c) {
            if (c.condition) {
                all[count++] = &c.awaited;
            }
        };
        std::apply([&](auto&... c) { (add(c), ...); }, cases_);
        if (count == 0) {
            all_left_out_ = !env.stop.stop_requested();
            return false;
        }
        lead_ = &waiter::join({all.data(), count});
        wait_list::granted to;
        return lead_->suspend_for_one(h, env, [&] { return take_one(to); });
    }
    [[nodiscard]] result<selected> await_resume() noexcept { return outcome<0>(); }

private:
    /// Tries all of them, in an order by chance, so that none that is ready again and again keeps others from their turn.
    waiter* take_one(wait_list::granted& to) noexcept {
        std::array<std::size_t, sizeof...(A)> left{};
        for (std::size_t i = 0; i < left.size(); ++i) {
            left[i] = i;
        }
        waiter* taken = nullptr;
        for (std::size_t n = left.size(); n != 0 && taken == nullptr; --n) {
            std::size_t const k = lead_->list_->draw(n);
            taken = take(left[k], to, std::index_sequence_for<A...>());
            left[k] = left[n - 1];
        }
        return taken;
    }

    template <std::size_t... I>
    waiter* take(std::size_t index, wait_list::granted& to, std::index_sequence<I...>) noexcept {
        waiter* taken = nullptr;
        auto const one = [&](auto& c) {
            if (c.condition && c.awaited.take(to)) {
                taken = &c.awaited;
            }
        };
        ((I == index ? one(std::get<I>(cases_)) : void()), ...);
        return taken;
    }

    template <std::size_t I>
    result<selected> outcome() noexcept {
        if constexpr (I == sizeof...(A)) {
            return all_left_out_ ? make_error_code(error::end_of_stream)
                                 : make_error_code(std::errc::operation_canceled);
        } else {
            auto& c = std::get<I>(cases_);
            if (c.awaited.granted()) {
                return selected(std::in_place_index<I>, c.awaited.await_resume());
            }
            return outcome<I + 1>();
        }
    }

    std::tuple<only_if<A>...> cases_;
    waiter* lead_ = nullptr;
    bool all_left_out_ = false;
};

template <class A>
only_if<A> select_case(A&& awaited) noexcept {
    return {true, std::move(awaited)};
}
template <class A>
only_if<A> select_case(only_if<A>&& c) noexcept {
    return c;
}

/// Awaits the first of several that can happen, which then does, while none of the others does:
///
///     auto const which = co_await select(jobs.receive(), results.send(std::move(r)), quit.wait());
///     if (which && which->index() == 0) { run(std::get<0>(*which).value()); }
///
/// Takes what a `channel`, an `event`, a `latch` and a `semaphore` have to be awaited, as temporaries, and is awaited in
/// the expression that makes it. Of several that can happen at once, each has the same chance. A closed channel can
/// happen, with its error, and goes on to: see `only_if`.
/// @return a variant of what each of them gives
/// Errors: operation_canceled, also for a stop from before; end_of_stream where all cases are left out. Cancel-safe: yes,
/// nothing is then sent or taken. Threads: any. Allocates: never.
template <class... Cases>
    requires(sizeof...(Cases) > 0 && (!std::is_lvalue_reference_v<Cases> && ...))
auto select(Cases&&... cases) noexcept {
    return select_awaitable(select_case(std::move(cases))...);
}

}  // namespace plumb
