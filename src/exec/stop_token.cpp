// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/stop_token.hpp>

#include <mutex>
#include <thread>

// Of an executor with several threads: a callback is registered, then either unregistered, or taken out and called by
// one thread (`called_`, `caller_`), for whose return `unregister` on another thread waits. All under the lock, but for
// the call itself.
namespace plumb {
namespace {

void const* this_thread() noexcept {
    static thread_local constinit char token = 0;
    return &token;
}

}  // namespace

bool stop_source::request_stop() noexcept {
    bool const inside = !where_ || where_.running_in_this_thread();
    auto expected = concurrent_ ? state::quiet_concurrent : state::quiet;
    if (!state_.compare_exchange_strong(expected, inside ? state::called : state::posted)) {
        return false;
    }
    if (inside) {
        call_all();
    } else {
        where_.post(this);
    }
    return true;
}

void stop_source::end_posted(owned_work& self, fate f) noexcept {
    auto& source = static_cast<stop_source&>(self);
    if (f == fate::run) {
        source.call_all();
    }
    source.state_.store(state::called);
}

void stop_source::call_all() noexcept {
    if (concurrent_) {
        call_all_concurrent();
        return;
    }
    while (callbacks_.registered()) {
        stop_callback_link& node = *callbacks_.next_;
        node.unregister();
        node.on_stop_(node);
    }
}

void stop_source::call_all_concurrent() noexcept {
    lock_.lock();
    while (callbacks_.registered()) {
        stop_callback_link& node = *callbacks_.next_;
        node.unregister();
        called_ = &node;
        caller_ = this_thread();
        lock_.unlock();
        node.on_stop_(node);  // the last touch: it may be gone
        lock_.lock();
        called_ = nullptr;
    }
    lock_.unlock();
}

void stop_source::watch_concurrent(stop_callback_node& node) noexcept {
    {
        std::scoped_lock const locked(lock_);
        if (!stop_requested()) {
            watch(node, node.call_);
            node.concurrent_ = this;
            return;
        }
    }
    node.call_(node);
}

void stop_callback_node::unregister_concurrent() noexcept {
    stop_source& source = *concurrent_;
    concurrent_ = nullptr;
    for (;;) {
        {
            std::scoped_lock const locked(source.lock_);
            stop_callback_link::unregister();
            if (source.called_ != this || source.caller_ == this_thread()) {
                return;
            }
        }
        // Another thread is inside the call, which is short.
        std::this_thread::yield();
    }
}

}  // namespace plumb
