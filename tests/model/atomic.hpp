// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/explorer.hpp"

#include <atomic>
#include <utility>

namespace plumb {

/// A `std::atomic` each operation of which is a point where the explorer may let another thread go on. All of them are
/// sequentially consistent.
template <class T>
class atomic {
public:
    constexpr atomic() noexcept : value_() {}
    constexpr atomic(T initial) noexcept : value_(initial) {}
    atomic(atomic const&) = delete;
    atomic& operator=(atomic const&) = delete;

    T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
        model::point();
        return value_;
    }
    void store(T to, std::memory_order = std::memory_order_seq_cst) noexcept {
        model::point();
        value_ = to;
    }
    T exchange(T to, std::memory_order = std::memory_order_seq_cst) noexcept {
        return change([&](T) { return to; });
    }
    bool compare_exchange_strong(T& expected, T to,
                                 std::memory_order = std::memory_order_seq_cst) noexcept {
        T const wanted = expected;
        expected = change([&](T now) { return now == wanted ? to : now; });
        return expected == wanted;
    }
    bool compare_exchange_weak(T& expected, T to,
                               std::memory_order o = std::memory_order_seq_cst) noexcept {
        return compare_exchange_strong(expected, to, o);
    }
    T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
        return change([&](T now) { return static_cast<T>(now + by); });
    }
    T fetch_sub(T by, std::memory_order = std::memory_order_seq_cst) noexcept {
        return change([&](T now) { return static_cast<T>(now - by); });
    }

    void wait(T old, std::memory_order = std::memory_order_seq_cst) const noexcept {
        while (load() == old) {
            model::sleep(this);
        }
    }
    void notify_one() noexcept { model::wake(this, false); }
    void notify_all() noexcept { model::wake(this, true); }

    operator T() const noexcept { return load(); }
    T operator=(T to) noexcept {
        store(to);
        return to;
    }
    T operator++() noexcept { return fetch_add(1) + 1; }
    T operator--() noexcept { return fetch_sub(1) - 1; }

private:
    template <class F>
    T change(F f) noexcept {
        model::point();
        T const before = value_;
        if (model::torn()) {
            model::point();
        }
        value_ = f(before);
        return before;
    }

    T value_;
};

}  // namespace plumb
