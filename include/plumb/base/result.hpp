// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/base/error.hpp>
#include <plumb/base/throw_error.hpp>

#include <concepts>
#include <expected>
#include <functional>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace plumb {

template <class T>
class result;

/// An enumeration of errors: `plumb::error`, `std::errc`, and whatever else makes error codes.
template <class E>
concept error_enum = std::is_error_code_enum_v<E> || std::same_as<E, std::errc>;

/// A failed result of any type: `return failure(std::errc::timed_out);`
[[nodiscard]] inline std::unexpected<std::error_code> failure(std::error_code error) noexcept {
    return std::unexpected(error);
}
template <error_enum E>
[[nodiscard]] std::unexpected<std::error_code> failure(E error) noexcept {
    return std::unexpected(make_error_code(error));
}

/// Whether `T` is one of the results.
template <class T>
concept result_like = std::derived_from<T, result<typename T::value_type>>;

/// A value, or the error in its place; for `result<void>` success or an error.
///
/// `value()` of a failed result throws `std::system_error`; `*` and `->` are for results that are
/// known to have a value. As small as `std::expected`; copied and destroyed trivially when `T` is.
/// Threads: as a value. Allocates: never. Source: D2052R0 4.1, P1028.
template <class T>
class [[nodiscard]] result {
    using content = std::expected<T, std::error_code>;
    using lvalue = std::add_lvalue_reference_t<T>;
    using const_lvalue = std::add_lvalue_reference_t<T const>;
    using rvalue = std::add_rvalue_reference_t<T>;
    using const_rvalue = std::add_rvalue_reference_t<T const>;

    template <class U>
    static constexpr bool is_value =
        std::convertible_to<U, T> && !std::derived_from<std::remove_cvref_t<U>, result> &&
        !error_enum<std::remove_cvref_t<U>> &&
        !std::same_as<std::remove_cvref_t<U>, std::error_code> &&
        !std::same_as<std::remove_cvref_t<U>, std::unexpected<std::error_code>>;

public:
    using value_type = T;
    using error_type = std::error_code;

    static_assert(!std::is_reference_v<T> && !error_enum<T> && !std::same_as<T, std::error_code>,
                  "a result holds an object that can't be mistaken for an error");

    /// Success, with a value made from nothing.
    result()
        requires std::default_initializable<content>
    = default;

    template <class U = T>
        requires(!std::is_void_v<T> && is_value<U>)
    result(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>)
        : content_(std::in_place, std::forward<U>(value)) {}

    template <class... Args>
        requires std::constructible_from<content, std::in_place_t, Args...>
    explicit result(std::in_place_t made_in, Args&&... args)
        : content_(made_in, std::forward<Args>(args)...) {}

    /// @param error  which is one: not 0
    result(std::error_code error) noexcept : content_(std::unexpect, error) { PLUMB_ASSERT(error); }
    result(std::unexpected<std::error_code> error) noexcept : result(error.error()) {}
    template <error_enum E>
    result(E error) noexcept : result(make_error_code(error)) {}

    [[nodiscard]] bool has_value() const noexcept { return content_.has_value(); }
    [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }

    /// Throws `std::system_error` when there is none.
    [[nodiscard]] lvalue value() & { return checked(*this), *content_; }
    [[nodiscard]] const_lvalue value() const& { return checked(*this), *content_; }
    [[nodiscard]] rvalue value() && { return checked(*this), *std::move(content_); }
    [[nodiscard]] const_rvalue value() const&& { return checked(*this), *std::move(content_); }

    [[nodiscard]] lvalue operator*() & noexcept { return known(*this), *content_; }
    [[nodiscard]] const_lvalue operator*() const& noexcept { return known(*this), *content_; }
    [[nodiscard]] rvalue operator*() && noexcept { return known(*this), *std::move(content_); }
    [[nodiscard]] const_rvalue operator*() const&& noexcept {
        return known(*this), *std::move(content_);
    }
    [[nodiscard]] std::add_pointer_t<T> operator->() noexcept
        requires(!std::is_void_v<T>)
    {
        return std::addressof(**this);
    }
    [[nodiscard]] std::add_pointer_t<T const> operator->() const noexcept
        requires(!std::is_void_v<T>)
    {
        return std::addressof(**this);
    }

    /// The error of a result that is known to have failed.
    [[nodiscard]] std::error_code error() const noexcept {
        PLUMB_ASSERT(!has_value());
        return content_.error();
    }

    template <class U>
        requires std::convertible_to<U, T>
    [[nodiscard]] T value_or(U&& other) const& {
        return has_value() ? **this : static_cast<T>(std::forward<U>(other));
    }
    template <class U>
        requires std::convertible_to<U, T>
    [[nodiscard]] T value_or(U&& other) && {
        return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(other));
    }

    /// The result that `f(value)` gives, or this error.
    template <class F>
    auto and_then(F&& f) const& {
        return chained(*this, std::forward<F>(f));
    }
    template <class F>
    auto and_then(F&& f) && {
        return chained(std::move(*this), std::forward<F>(f));
    }

    /// A result that holds what `f(value)` gives, or this error.
    template <class F>
    auto transform(F&& f) const& {
        return transformed(*this, std::forward<F>(f));
    }
    template <class F>
    auto transform(F&& f) && {
        return transformed(std::move(*this), std::forward<F>(f));
    }

    /// This value, or the result that `f(error)` gives.
    template <std::invocable<std::error_code> F>
    result or_else(F&& f) const& {
        return has_value() ? *this : std::invoke(std::forward<F>(f), error());
    }
    template <std::invocable<std::error_code> F>
    result or_else(F&& f) && {
        return has_value() ? std::move(*this) : std::invoke(std::forward<F>(f), error());
    }

    /// This value, or the error that `f(error)` gives.
    template <std::invocable<std::error_code> F>
    result transform_error(F&& f) const& {
        return has_value() ? *this : result(std::invoke(std::forward<F>(f), error()));
    }
    template <std::invocable<std::error_code> F>
    result transform_error(F&& f) && {
        return has_value() ? std::move(*this) : result(std::invoke(std::forward<F>(f), error()));
    }

    /// Equal values, or the very same error; `r.error() == std::errc::timed_out` asks for the kind.
    template <std::same_as<result> R>
    friend bool operator==(R const& a, R const& b) {
        if (a.has_value() != b.has_value()) {
            return false;
        }
        if constexpr (std::is_void_v<T>) {
            return a.has_value() || a.error() == b.error();
        } else {
            return a.has_value() ? *a == *b : a.error() == b.error();
        }
    }
    template <class U>
        requires is_value<U>
    friend bool operator==(result const& a, U const& b) {
        return a.has_value() && *a == b;
    }

private:
    static void checked(result const& r) {
        if (!r.has_value()) [[unlikely]] {
            throw_error(r.content_.error());
        }
    }
    static void known([[maybe_unused]] result const& r) noexcept { PLUMB_ASSERT(r.has_value()); }

    template <class Self, class F>
    static decltype(auto) call(Self&& self, F&& f) {
        if constexpr (std::is_void_v<T>) {
            return std::invoke(std::forward<F>(f));
        } else {
            return std::invoke(std::forward<F>(f), *std::forward<Self>(self));
        }
    }

    template <class Self, class F>
    static auto chained(Self&& self, F&& f) {
        using next = std::remove_cvref_t<decltype(call(std::forward<Self>(self), f))>;
        static_assert(result_like<next>, "and_then takes a function that returns a result");
        if (!self.has_value()) {
            return next(self.error());
        }
        return next(call(std::forward<Self>(self), std::forward<F>(f)));
    }

    template <class Self, class F>
    static auto transformed(Self&& self, F&& f) {
        using mapped = std::remove_cv_t<decltype(call(std::forward<Self>(self), f))>;
        if (!self.has_value()) {
            return result<mapped>(self.error());
        }
        if constexpr (std::is_void_v<mapped>) {
            call(std::forward<Self>(self), std::forward<F>(f));
            return result<void>();
        } else {
            return result<mapped>(std::in_place,
                                  call(std::forward<Self>(self), std::forward<F>(f)));
        }
    }

    content content_;
};

// What a function returns in registers, or a state keeps without a destructor, stays so as a result.
static_assert(sizeof(result<void*>) <= 24 && alignof(result<void*>) == alignof(void*));
static_assert(std::is_trivially_copy_constructible_v<result<void*>> &&
              std::is_trivially_destructible_v<result<void*>>);

}  // namespace plumb
