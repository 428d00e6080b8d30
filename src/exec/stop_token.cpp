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
        if (state_.load() == state::quiet) {
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
