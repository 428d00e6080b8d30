// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "networking_ts/async_result.hpp"
#include "networking_ts/executor.hpp"
#include "networking_ts/handler_work.hpp"

#include <plumb/base/assert.hpp>
#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include <atomic>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace networking_ts {

/// What a socket, an acceptor or a timer shares with its operations, and with what it has posted.
/// Threads: the context's, but for `used`.
class io_object {
public:
    explicit io_object(plumb::io_context& c) noexcept : context_(c) { renew(); }
    io_object(io_object const&) = delete;
    io_object& operator=(io_object const&) = delete;

    [[nodiscard]] plumb::io_context& context() const noexcept { return context_; }
    [[nodiscard]] plumb::stop_token token() noexcept { return stop_->token(); }

    /// Ends its operations early: they complete with operation_canceled, or with their results where these came first.
    void cancel() noexcept {
        stop_->request_stop();
        renew();
    }

    /// Whether an operation was ever begun.
    std::atomic<bool> used{false};

private:
    void renew() noexcept {
        stop_.emplace(context_.get_executor(), plumb::stop_source::requested_inside{});
    }

    plumb::io_context& context_;
    std::optional<plumb::stop_source> stop_;
};

/// Calls `f` inside of the context that an object's operations are in, at once or later; also at once where there
/// have never been any.
template <class F>
void inside_of(io_object const& object, F f) {
    auto& context = object.context();
    if (!object.used.load() || context.get_executor().running_in_this_thread()) {
        f();
    } else {
        auto const posted = context.multiplexer().post(std::move(f));
        plumb::require(posted.has_value(), "no memory to cancel or close from another thread");
    }
}

class operation_slot;

/// What there is to an operation besides its sender and its handler.
class operation_base : public plumb::owned_work,
                       protected plumb::root_node,
                       protected plumb::stop_callback_node {
public:
    virtual void cancel() noexcept = 0;
    using root_node::destroy;

protected:
    using owned_work::end_function;
    operation_base(end_function end, root_node::destroy_function on_destroy) noexcept
        : owned_work(end), root_node(on_destroy, nullptr), stop_callback_node(&on_stop) {}
    ~operation_base() = default;

private:
    static void on_stop(plumb::stop_callback_link& self) noexcept {
        static_cast<operation_base&>(static_cast<stop_callback_node&>(self)).cancel();
    }
};

/// Where an operation in flight is known to the one who waits for it.
class operation_slot {
public:
    void occupy(operation_base* o) noexcept { operation_ = o; }
    void cancel() noexcept {
        if (operation_ != nullptr) {
            operation_->cancel();
        }
    }
    /// The operation is no more, and its buffers are free, when this returns.
    void destroy() noexcept {
        if (operation_ != nullptr) {
            operation_->destroy();
        }
    }

private:
    operation_base* operation_ = nullptr;
};

/// An operation of plumb with a handler: one block from plumb's pool, which is free again when the handler is called.
///
/// States: made -> posted (from outside of the context: it is the work that starts it there) -> in flight -> over ->
/// posted (to the handler's own executor) -> gone, and the handler is called. In flight it belongs to the context, which
/// destroys what is in flight when it is destroyed; posted it belongs to a queue.
///
/// @tparam Io  what is done: `object()`, `sender()`, and `arguments(result)`, the handler's. What the sender borrows
///             it owns.
template <class Io, class Handler>
class operation final : public operation_base, public pooled {
    using sender_type = decltype(std::declval<Io&>().sender());
    using result_type = typename sender_type::result_type;
    using arguments_type = decltype(std::declval<Io&>().arguments(std::declval<result_type>()));
    using executor_type = associated_executor_t<Handler, plumb::io_context::executor_type>;

public:
    static void initiate(Io io, Handler handler) {
        io.object().used.store(true);
        auto& context = io.object().context();
        bool const inside = context.get_executor().running_in_this_thread();
        plumb::require(inside || get_associated_slot(handler) == nullptr,
                       "an operation was awaited outside of the io_context of its object");
        auto* const made = new operation(context, std::move(io), std::move(handler));
        if (inside) {
            made->start();
        } else {
            context.get_executor().post(made);
        }
    }

    void cancel() noexcept override { connection_->cancel(); }

private:
    struct receiver {
        operation* of;
        void set_value(result_type&& r) const noexcept {
            of->arguments_.emplace(of->io_->arguments(std::move(r)));
        }
        void set_done() const noexcept { of->finish(); }
    };

    operation(plumb::io_context& context, Io io, Handler handler)
        : operation_base(&operation::run,
                         [](root_node& self) noexcept {
                             delete static_cast<operation*>(static_cast<operation_base*>(&self));
                         }),
          context_(context),
          io_(std::move(io)),
          handler_(std::move(handler)),
          executor_(get_associated_executor(handler_, context.get_executor())),
          elsewhere_(plumb::executor_ref(executor_) !=
                     plumb::executor_ref(context.get_executor())) {
        if (elsewhere_) {
            plumb::executor_ref(executor_).work_started();
        }
    }
    ~operation() {
        leave();
        if (elsewhere_) {
            plumb::executor_ref(executor_).work_finished();
        }
    }
    friend std::default_delete<operation>;

    void start() noexcept {
        context_.roots().add(*this);
        io_->object().token().call_on_stop(*this);
        slot_ = get_associated_slot(handler_);
        if (slot_ != nullptr) {
            slot_->occupy(this);
        }
        connection_.emplace(io_->sender(), receiver{this});
        connection_->start();
    }

    /// On the context's thread: all that belongs there ends there.
    void finish() noexcept {
        leave();
        context_.roots().remove(*this);
        connection_.reset();
        io_.reset();
        if (elsewhere_) {
            executor_.post(this);
        } else {
            complete();
        }
    }

    /// Nobody can cancel it any more.
    void leave() noexcept {
        stop_callback_node::unregister();
        if (slot_ != nullptr) {
            std::exchange(slot_, nullptr)->occupy(nullptr);
        }
    }

    void complete() noexcept {
        auto handler = std::move(handler_);
        auto arguments = std::move(*arguments_);
        delete this;
        call_handler([&] { std::apply(std::move(handler), std::move(arguments)); });
    }

    static void run(owned_work& self, fate f) noexcept {
        auto* const o = static_cast<operation*>(&self);
        if (f == fate::dropped) {
            delete o;
        } else if (o->arguments_) {
            o->complete();
        } else {
            o->start();
        }
    }

    plumb::io_context& context_;
    std::optional<Io> io_;
    Handler handler_;
    executor_type executor_;
    bool elsewhere_;
    operation_slot* slot_ = nullptr;
    std::optional<arguments_type> arguments_;
    std::optional<plumb::io_operation_connection<sender_type, receiver>> connection_;
};

/// Begins `io` with a completion token.
template <class Signature, class Token, class Io>
decltype(auto) initiate_operation(Io io, Token&& token) {
    return async_initiate<Signature>(
        [](auto handler, Io what) {
            operation<Io, decltype(handler)>::initiate(std::move(what), std::move(handler));
        },
        std::forward<Token>(token), std::move(io));
}

}  // namespace networking_ts
