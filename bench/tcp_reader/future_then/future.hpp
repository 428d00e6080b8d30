// SPDX-License-Identifier: Apache-2.0
//
// Futures with `then`, for one thread: a state that both ends share, and a continuation whose type is erased.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

struct nothing {};

template <class T>
class future {
public:
    struct shared {
        std::optional<T> value;
        std::exception_ptr exception;
        std::function<void()> continuation;

        [[nodiscard]] bool ready() const { return value || exception != nullptr; }
        void tell() {
            if (continuation) {
                std::exchange(continuation, nullptr)();
            }
        }
    };

    explicit future(std::shared_ptr<shared> s) : shared_(std::move(s)) {}

    T get() {
        if (shared_->exception != nullptr) {
            std::rethrow_exception(shared_->exception);
        }
        return std::move(*shared_->value);
    }

    /// Calls `f` with this future when it is ready. `f` gives a future, and this becomes it.
    template <class F>
    auto then(F f) -> std::invoke_result_t<F, future>;

    /// Calls `f` with this future when it is ready.
    template <class F>
    void finally(F f) {
        if (shared_->ready()) {
            f(*this);
        } else {
            auto* const s = shared_.get();
            s->continuation = [f = std::move(f), self = shared_]() mutable { f(future(self)); };
        }
    }

private:
    std::shared_ptr<shared> shared_;
};

template <class T>
class promise {
public:
    [[nodiscard]] future<T> get_future() const { return future<T>(shared_); }
    void set_value(T value) const {
        shared_->value = std::move(value);
        shared_->tell();
    }
    void set_exception(std::exception_ptr e) const {
        shared_->exception = std::move(e);
        shared_->tell();
    }

private:
    std::shared_ptr<typename future<T>::shared> shared_ =
        std::make_shared<typename future<T>::shared>();
};

template <class T>
future<T> make_ready_future(T value) {
    promise<T> const made;
    made.set_value(std::move(value));
    return made.get_future();
}

/// Gives the promise what the future gets.
template <class T>
void forward(future<T> from, promise<T> to) {
    from.finally([to](future<T> ready) {
        try {
            to.set_value(ready.get());
        } catch (...) {
            to.set_exception(std::current_exception());
        }
    });
}

template <class T>
template <class F>
auto future<T>::then(F f) -> std::invoke_result_t<F, future> {
    using result = std::invoke_result_t<F, future>;
    using value = decltype(std::declval<result>().get());
    promise<value> const made;
    finally([made, f = std::move(f)](future ready) mutable {
        try {
            forward(f(ready), made);
        } catch (...) {
            made.set_exception(std::current_exception());
        }
    });
    return made.get_future();
}

/// Runs `body` again and again until it gives false. Each time of itself, so that no chain of futures grows.
inline void do_while(std::function<future<bool>()> body, promise<nothing> const& over) {
    body().finally([body, over](future<bool> again) {
        try {
            if (again.get()) {
                do_while(body, over);
            } else {
                over.set_value({});
            }
        } catch (...) {
            over.set_exception(std::current_exception());
        }
    });
}

inline future<nothing> do_while(std::function<future<bool>()> body) {
    promise<nothing> const over;
    do_while(std::move(body), over);
    return over.get_future();
}
