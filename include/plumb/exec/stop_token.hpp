// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/atomic.hpp>
#include <plumb/exec/brief_lock.hpp>
#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/owned_work.hpp>

#include <utility>

namespace plumb {

class stop_source;

/// Where a stop source keeps who is to be called. Trivial, for states that are made often and registered seldom:
/// their owner unlinks it before it goes. `stop_callback_node` does that by itself.
class stop_callback_link {
public:
    using function = void (*)(stop_callback_link&) noexcept;

    // Both only after `clear` or a registration.
    [[nodiscard]] bool registered() const noexcept { return next_ != this; }
    void unregister() noexcept {
        leave();
        clear();
    }

protected:
    stop_callback_link() noexcept {}  // NOLINT: initialised by `clear` or a registration
    ~stop_callback_link() = default;

    void clear() noexcept { previous_ = next_ = this; }

    /// As `unregister`, of what is cleared or registered again before it is looked at.
    void leave() noexcept {
        previous_->next_ = next_;
        next_->previous_ = previous_;
    }

private:
    friend stop_source;
    friend class stop_token;

    // A ring through the source; of itself alone while unregistered.
    stop_callback_link* previous_;
    stop_callback_link* next_;
    function on_stop_;  // while registered
};

/// A node that a stop source calls once when a stop is requested. Register it with `stop_token::call_on_stop`.
/// Unregisters itself when destroyed, and then waits for a call that another thread is inside of, which only executors
/// with several threads have. Threads: only inside the source's executor. Allocates: never.
class stop_callback_node : public stop_callback_link {
public:
    explicit stop_callback_node(function on_stop) noexcept : call_(on_stop) { clear(); }
    stop_callback_node(stop_callback_node const&) = delete;
    stop_callback_node& operator=(stop_callback_node const&) = delete;
    ~stop_callback_node() { unregister(); }

    void unregister() noexcept {
        if (concurrent_ == nullptr) {
            stop_callback_link::unregister();
        } else {
            unregister_concurrent();
        }
    }

private:
    friend stop_source;
    friend class stop_token;

    void unregister_concurrent() noexcept;

    function call_;
    stop_source* concurrent_ = nullptr;  // while registered with a source of several threads
};

/// Tells whether a stop was requested, and calls back when it is. A borrowed pointer to a `stop_source`, which
/// must outlive it; a default-constructed token never stops.
/// Threads: `stop_requested` from any; the rest only inside the source's executor.
class stop_token {
public:
    constexpr stop_token() noexcept = default;

    /// Whether a stop can ever be requested.
    [[nodiscard]] bool stop_possible() const noexcept { return source_ != nullptr; }
    [[nodiscard]] inline bool stop_requested() const noexcept;

    /// Whether `watch` may be called: no stop was requested, and the source isn't one of several threads.
    [[nodiscard]] inline bool can_watch() const noexcept;

    /// The source, which is not touched; null where no stop is possible.
    [[nodiscard]] stop_source const* source() const noexcept { return source_; }

    /// Registers `node` where it was just seen, inside the executor, that it `can_watch`; clears it where no stop is
    /// possible.
    inline void watch(stop_callback_link& node,
                      stop_callback_link::function on_stop) const noexcept;

    /// Registers `node`, or calls it at once when a stop was already requested.
    inline void call_on_stop(stop_callback_node& node) const noexcept;

    friend bool operator==(stop_token const&, stop_token const&) noexcept = default;

private:
    friend stop_source;
    constexpr explicit stop_token(stop_source& source) noexcept : source_(&source) {}

    stop_source* source_ = nullptr;
};

/// Owns a stop request: once requested, forever requested.
///
/// States: quiet -> called (requested inside the executor: the callbacks run at once), or
/// quiet -> posted -> called (requested elsewhere: the source's own node runs them on the executor).
/// Operations that start in any state but quiet are cancelled. The source must outlive `posted`; an executor that
/// ends with the node in its queue leads to `called` without calling anybody.
///
/// Of an executor that several threads are inside of, the callbacks are under a lock, which is not held while one of
/// them runs; i/o watches it only on a multiplexer that is for several threads, too.
///
/// Threads: `request_stop`, `stop_requested` and `busy` from any thread; the rest inside the executor.
/// Allocates: never. Cancellation in the manner of C++26's `inplace_stop_source`.
class stop_source : private owned_work {
public:
    /// @param where  runs the callbacks; must outlive the source
    explicit stop_source(executor_ref where) noexcept : stop_source(where, requested_inside()) {
        where_ = where;
    }

    struct requested_inside {};
    /// One whose stop is requested only inside the executor, so that it is never busy.
    stop_source(executor_ref where, requested_inside) noexcept
        : owned_work(&stop_source::end_posted),
          state_(where.concurrent() ? state::quiet_concurrent : state::quiet),
          concurrent_(where.concurrent()) {}
    stop_source(stop_source const&) = delete;
    stop_source& operator=(stop_source const&) = delete;

    ~stop_source() {
        require(!busy(),
                "a stop_source was destroyed while its request was in its executor's queue");
        require(!callbacks_.registered(),
                "a stop_source was destroyed before the operations that watch it");
    }

    [[nodiscard]] stop_token token() noexcept { return stop_token(*this); }
    [[nodiscard]] bool stop_requested() const noexcept { return state_.load() >= state::posted; }

    /// Whether a request waits in the executor's queue.
    [[nodiscard]] bool busy() const noexcept { return state_.load() == state::posted; }

    /// @return false when a stop was already requested
    bool request_stop() noexcept;

private:
    friend stop_token;
    friend stop_callback_node;
    enum class state : unsigned char { quiet, quiet_concurrent, posted, called };

    static void end_posted(owned_work& self, fate f) noexcept;
    void call_all() noexcept;
    void call_all_concurrent() noexcept;
    void watch_concurrent(stop_callback_node& node) noexcept;

    void watch(stop_callback_link& node, stop_callback_link::function on_stop) noexcept {
        stop_callback_link& first = *callbacks_.next_;
        node.on_stop_ = on_stop;
        node.previous_ = &callbacks_;
        node.next_ = &first;
        first.previous_ = &node;
        callbacks_.next_ = &node;
    }

    struct ring_start : stop_callback_link {
        ring_start() noexcept { clear(); }
    };

    executor_ref where_;
    ring_start callbacks_;
    atomic<state> state_;

    bool const concurrent_;
    brief_lock lock_;                             // where it is concurrent
    stop_callback_link const* called_ = nullptr;  // the one that is being called, under the lock
    void const* caller_ = nullptr;                // and the thread that does it
};

bool stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}

bool stop_token::can_watch() const noexcept {
    return source_ == nullptr || source_->state_.load() == stop_source::state::quiet;
}

void stop_token::watch(stop_callback_link& node,
                       stop_callback_link::function on_stop) const noexcept {
    if (source_ != nullptr) {
        source_->watch(node, on_stop);
    } else {
        node.clear();
    }
}

void stop_token::call_on_stop(stop_callback_node& node) const noexcept {
    if (source_ != nullptr && source_->concurrent_) {
        source_->watch_concurrent(node);
    } else if (source_ != nullptr && source_->state_.load() == stop_source::state::called) {
        node.call_(node);
    } else {
        watch(node, node.call_);
    }
}

/// Calls `F` when a stop is requested, while it lives. Threads: only inside the source's executor.
template <class F>
class stop_callback : private stop_callback_node {
public:
    stop_callback(stop_token token, F on_stop) noexcept
        : stop_callback_node([](stop_callback_link& self) noexcept {
              static_cast<stop_callback&>(self).on_stop_();
          }),
          on_stop_(std::move(on_stop)) {
        token.call_on_stop(*this);
    }
    stop_callback(stop_callback const&) = delete;
    stop_callback& operator=(stop_callback const&) = delete;
    ~stop_callback() { unregister(); }  // before the function goes

    using stop_callback_node::unregister;

private:
    F on_stop_;
};

}  // namespace plumb
