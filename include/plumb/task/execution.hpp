// SPDX-License-Identifier: Apache-2.0
#pragma once

// Optional: nothing else includes it. It takes the senders of the standard library where that has them, else stdexec.
#include <version>
#if defined(__cpp_lib_senders)
#include <execution>
#include <stop_token>
namespace plumb {
// As stdexec has it: what of it is elsewhere in the standard is here too.
namespace standard {
using namespace ::std::execution;
using ::std::get_stop_token;
using ::std::get_stop_token_t;
using ::std::inplace_stop_source;
using ::std::inplace_stop_token;
using ::std::stop_callback_for_t;
using ::std::stop_token_of_t;
}  // namespace standard
}  // namespace plumb
#elif __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
namespace plumb {
namespace standard = ::stdexec;
}  // namespace plumb
#else
#error                                                                                             \
    "plumb/task/execution.hpp needs std::execution: a library that has it, or stdexec among the includes"
#define PLUMB_HAS_NO_SENDERS
#endif

#ifndef PLUMB_HAS_NO_SENDERS

#include <plumb/base/assert.hpp>
#include <plumb/base/throw_error.hpp>
#include <plumb/exec/executor.hpp>
#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/io_env.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/exec/work_guard.hpp>
#include <plumb/io/io_awaitable.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/cancellation.hpp>
#include <plumb/task/task.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

namespace plumb {

using standard_stop_source = standard::inplace_stop_source;
using standard_stop_token = standard::inplace_stop_token;

/// A plumb executor as a scheduler of std::execution: what it schedules is posted to the executor. Where that ends with
/// it in its queue, it completes as stopped. The executor's context outlives the operations.
/// Threads: as the executor's `post`. Allocates: never.
template <executor E>
class executor_scheduler {
public:
    using scheduler_concept = standard::scheduler_t;

    explicit executor_scheduler(E where) noexcept : where_(std::move(where)) {}

    class sender;
    [[nodiscard]] sender schedule() const noexcept { return sender(where_); }

    friend bool operator==(executor_scheduler const& a, executor_scheduler const& b) noexcept {
        return a.where_ == b.where_;
    }

private:
    E where_;
};

template <executor E>
class executor_scheduler<E>::sender {
    template <class Receiver>
    class operation : private owned_work {
    public:
        using operation_state_concept = standard::operation_state_t;

        operation(E where, Receiver told) noexcept
            : owned_work(&operation::end), where_(std::move(where)), told_(std::move(told)) {}
        operation(operation&&) = delete;

        void start() & noexcept { where_.post(this); }

    private:
        static void end(owned_work& self, fate f) noexcept {
            auto& told = static_cast<operation&>(self).told_;
            if (f == fate::dropped ||
                standard::get_stop_token(standard::get_env(told)).stop_requested()) {
                standard::set_stopped(std::move(told));
            } else {
                standard::set_value(std::move(told));
            }
        }

        E where_;
        Receiver told_;
    };

    struct attributes {
        E where;
        template <class Tag, class... Env>
        [[nodiscard]] executor_scheduler query(standard::get_completion_scheduler_t<Tag>,
                                               Env const&...) const noexcept {
            return executor_scheduler(where);
        }
    };

public:
    using sender_concept = standard::sender_t;
    using completion_signatures =
        standard::completion_signatures<standard::set_value_t(), standard::set_stopped_t()>;
    template <class, class...>
    static consteval completion_signatures get_completion_signatures() noexcept {
        return {};
    }

    explicit sender(E where) noexcept : where_(std::move(where)) {}

    template <standard::receiver Receiver>
    [[nodiscard]] operation<Receiver> connect(Receiver told) const noexcept {
        return {where_, std::move(told)};
    }
    [[nodiscard]] attributes get_env() const noexcept { return {where_}; }

private:
    E where_;
};

template <executor E>
[[nodiscard]] executor_scheduler<E> as_scheduler(E where) noexcept {
    return executor_scheduler<E>(std::move(where));
}

/// A task as a sender of std::execution; see `as_sender`.
template <executor E, class T>
class task_sender {
    template <class V>
    struct signatures {
        using type = standard::completion_signatures<standard::set_value_t(V),
                                                     standard::set_error_t(std::exception_ptr),
                                                     standard::set_stopped_t()>;
    };
    template <class V>
        requires std::is_void_v<V>
    struct signatures<V> {
        using type = standard::completion_signatures<standard::set_value_t(),
                                                     standard::set_error_t(std::exception_ptr),
                                                     standard::set_stopped_t()>;
    };

    template <class Receiver>
    class operation;

public:
    using sender_concept = standard::sender_t;
    using completion_signatures = signatures<T>::type;
    template <class, class...>
    static consteval completion_signatures get_completion_signatures() noexcept {
        return {};
    }

    task_sender(E where, task<T> what) noexcept
        : where_(std::move(where)), what_(std::move(what)) {}

    template <standard::receiver Receiver>
    [[nodiscard]] operation<Receiver> connect(Receiver told) && noexcept {
        return {std::move(where_), std::move(what_), std::move(told)};
    }

private:
    E where_;
    task<T> what_;
};

// States: made -> queued (`start`) -> runs -> ended (its result is here, and this is queued behind the stop request
// that may be in the queue) -> over: the receiver is told, once. Where the executor's context ends before, it is told
// that it was stopped.
template <executor E, class T>
template <class Receiver>
class task_sender<E, T>::operation : private owned_work {
public:
    using operation_state_concept = standard::operation_state_t;

    operation(E where, task<T> what, Receiver told) noexcept
        : owned_work(&operation::end),
          where_(std::move(where)),
          what_(std::move(what)),
          told_(std::move(told)),
          stop_(where_) {}
    operation(operation&&) = delete;

    void start() & noexcept { where_.post(this); }

private:
    struct request_stop {
        stop_source* source;
        void operator()() const noexcept { source->request_stop(); }
    };
    using forward =
        standard::stop_callback_for_t<standard::stop_token_of_t<standard::env_of_t<Receiver>>,
                                      request_stop>;

    /// Is told of the end of the task, or, once that was launched, is destroyed with it.
    class completion {
    public:
        explicit completion(operation& of) noexcept : of_(&of) {}
        completion(completion&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
        ~completion() {
            if (of_ != nullptr && of_->launched_) {
                of_->stopped();
            }
        }
        void operator()(task_result<T>& ended) noexcept {
            operation& of = *std::exchange(of_, nullptr);
            of.ended_.emplace(std::move(ended));
            of.where_.post(&of);
        }

    private:
        operation* of_;
    };

    static void end(owned_work& self, fate f) noexcept {
        auto& op = static_cast<operation&>(self);
        if (f == fate::dropped) {
            op.stopped();
        } else if (!op.ended_) {
            op.run();
        } else {
            op.forward_.reset();
            if (op.stop_.busy()) {
                op.where_.post(&op);
            } else {
                op.tell();
            }
        }
    }

    void run() noexcept {
        forward_.emplace(standard::get_stop_token(standard::get_env(told_)), request_stop{&stop_});
        try {
            auto const root =
                root_coroutine<E>::make(where_, stop_.token(), std::move(what_), completion(*this));
            launched_ = true;
            root.coroutine.promise().post_start();  // from here on this may be gone
        } catch (...) {
            ended_.emplace().set_exception(std::current_exception());
            where_.post(this);
        }
    }

    void tell() noexcept {
        if (auto const failure = ended_->exception(); is_cancellation(failure)) {
            standard::set_stopped(std::move(told_));
        } else if (failure != nullptr) {
            standard::set_error(std::move(told_), failure);
        } else if constexpr (std::is_void_v<T>) {
            standard::set_value(std::move(told_));
        } else {
            standard::set_value(std::move(told_), ended_->take());
        }
    }
    void stopped() noexcept {
        forward_.reset();
        standard::set_stopped(std::move(told_));
    }

    E where_;
    task<T> what_;
    Receiver told_;
    stop_source stop_;
    bool launched_ = false;
    std::optional<forward> forward_;
    std::optional<task_result<T>> ended_;
};

/// A task as a sender of std::execution: `as_sender(pool.get_executor(), f()) | then(...)`. It runs on `where`, whose
/// context outlives it, and completes there: with its value, with an exception, or as stopped where it was cancelled. A
/// stop request of the receiver, from any thread, reaches it.
/// Threads: any. Allocates: frames, from the pool; where there is no memory it completes with bad_alloc.
template <executor E, class T>
[[nodiscard]] task_sender<E, T> as_sender(E where, task<T> what) noexcept {
    return {std::move(where), std::move(what)};
}

/// The same of one of plumb's senders, such as `async_read`: gives what awaiting it gives, without its error, which it
/// completes with as an exception, or as stopped. The executor is that of the `io_context` that it belongs to.
/// Allocates: as that of a task, and a frame at the call, which throws bad_alloc.
template <executor E, class Sender>
    requires requires { typename Sender::result_type; }
[[nodiscard]] auto as_sender(E where, Sender what) {
    using value = typename Sender::result_type::value_type;
    struct launched {
        static task<value> run(Sender what) {
            auto done = co_await io_awaitable<Sender>(what);
            co_return std::move(done).value();
        }
    };
    return as_sender(std::move(where), launched::run(std::move(what)));
}

/// What a coroutine of plumb awaits of a sender; see `from_sender`.
template <standard::sender Sender>
class [[nodiscard]] sender_awaitable : private owned_work {
    class environment {
    public:
        explicit environment(sender_awaitable const& of) noexcept : of_(&of) {}
        [[nodiscard]] standard_stop_token query(standard::get_stop_token_t) const noexcept {
            return of_->stop_.get_token();
        }
        [[nodiscard]] executor_scheduler<executor_ref>
        query(standard::get_scheduler_t) const noexcept {
            return as_scheduler(of_->env_->executor);
        }

    private:
        sender_awaitable const* of_;
    };

    class receiver {
    public:
        using receiver_concept = standard::receiver_t;

        explicit receiver(sender_awaitable& of) noexcept : of_(&of) {}
        template <class... V>
        void set_value(V&&... values) noexcept {
            try {
                of_->values_.emplace(std::forward<V>(values)...);
            } catch (...) {
                of_->failure_ = std::current_exception();
            }
            of_->complete();
        }
        template <class Error>
        void set_error(Error&& error) noexcept {
            if constexpr (std::same_as<std::remove_cvref_t<Error>, std::exception_ptr>) {
                of_->failure_ = std::forward<Error>(error);
            } else if constexpr (std::same_as<std::remove_cvref_t<Error>, std::error_code>) {
                of_->failure_ = std::make_exception_ptr(std::system_error(error));
            } else {
                of_->failure_ = std::make_exception_ptr(std::forward<Error>(error));
            }
            of_->complete();
        }
        void set_stopped() noexcept { of_->complete(); }
        [[nodiscard]] environment get_env() const noexcept { return environment(*of_); }

    private:
        sender_awaitable* of_;
    };

    template <class... V>
    using decayed = std::tuple<std::decay_t<V>...>;
    template <class... Tuples>
    struct only {
        static_assert(sizeof...(Tuples) == 0,
                      "a sender that is awaited completes with a value in one way");
        using type = std::tuple<>;
    };
    template <class Tuple>
    struct only<Tuple> {
        using type = Tuple;
    };

    using values = standard::value_types_of_t<Sender, environment, decayed, only>::type;
    using operation = standard::connect_result_t<Sender, receiver>;

public:
    explicit sender_awaitable(Sender&& sender) noexcept
        : owned_work(&sender_awaitable::end), sender_(std::forward<Sender>(sender)) {}
    sender_awaitable(sender_awaitable const&) = delete;
    sender_awaitable& operator=(sender_awaitable const&) = delete;
    ~sender_awaitable() {
        require(!waiting_, "a coroutine was destroyed while a sender that it awaits was running");
        if (phase_.load() != phase::idle) {
            std::destroy_at(&operation_);
        }
    }

    [[nodiscard]] bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> h, io_env const& env) {
        if (env.stop.stop_requested()) {
            return false;
        }
        env_ = &env;
        ::new (static_cast<void*>(std::addressof(operation_)))
            operation(standard::connect(std::forward<Sender>(sender_), receiver(*this)));
        phase_.store(phase::starting);
        waiting_ = h;
        comes_.emplace(env.executor);
        forward_.emplace(env.stop, request_stop{&stop_});
        standard::start(operation_);
        auto expected = phase::starting;
        if (phase_.compare_exchange_strong(expected, phase::running)) {
            return true;  // from here on it may be gone
        }
        waiting_ = nullptr;
        return false;
    }
    decltype(auto) await_resume() {
        forward_.reset();
        comes_.reset();
        if (failure_ != nullptr) {
            std::rethrow_exception(failure_);
        }
        if (!values_) {
            throw_error(std::make_error_code(std::errc::operation_canceled), "from_sender");
        }
        if constexpr (std::tuple_size_v<values> == 1) {
            return std::tuple_element_t<0, values>(std::get<0>(*std::move(values_)));
        } else if constexpr (std::tuple_size_v<values> != 0) {
            return values(*std::move(values_));
        }
    }

private:
    // States: idle -> starting -> running (the coroutine is suspended) -> completed, when this is posted; or starting ->
    // completed, by whichever thread, where await_suspend sees it and the coroutine goes on.
    enum class phase : std::uint8_t { idle, starting, running, completed };

    struct request_stop {
        standard_stop_source* source;
        void operator()() const noexcept { source->request_stop(); }
    };

    void complete() noexcept {
        if (phase_.exchange(phase::completed) == phase::running) {
            env_->executor.post(this);  // the last touch
        }
    }
    static void end(owned_work& self, fate f) noexcept {
        auto const h = std::exchange(static_cast<sender_awaitable&>(self).waiting_, nullptr);
        if (f == fate::run) {
            h.resume();
        }
    }

    Sender&& sender_;
    io_env const* env_ = nullptr;
    std::coroutine_handle<> waiting_;
    std::atomic<phase> phase_{phase::idle};
    std::optional<values> values_;
    std::exception_ptr failure_;  // where there are none; null: it was stopped
    standard_stop_source stop_;
    std::optional<work_guard> comes_;  // the completion, to the executor
    std::optional<stop_callback<request_stop>> forward_;
    union {
        operation operation_;  // unless idle
    };
};

/// `co_await from_sender(s)`: awaits a sender of std::execution, and gives its value, or a tuple of several. Throws what
/// it fails with, an error code as `std::system_error`; as operation_canceled where it was stopped, also by a stop from
/// before, where it isn't started. A stop request of the coroutine reaches the sender. Whichever thread it completes on,
/// the coroutine goes on on its own executor, which the sender finds as the scheduler of its environment and whose context
/// doesn't end meanwhile for lack of work. Throws what connecting the sender throws.
///
/// Takes what is awaited in the expression that makes it. The coroutine isn't destroyed while the sender runs.
/// Cancel-safe: as the sender. Threads: the executor's. Allocates: never, but for what an error is thrown with.
template <class Sender>
    requires standard::sender<Sender>
[[nodiscard]] sender_awaitable<Sender> from_sender(Sender&& sender) noexcept {
    return sender_awaitable<Sender>(std::forward<Sender>(sender));
}

}  // namespace plumb

#endif
