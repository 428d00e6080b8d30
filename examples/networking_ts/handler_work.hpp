// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/owned_work.hpp>
#include <plumb/exec/pooled_memory.hpp>

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <new>
#include <utility>

namespace networking_ts {

/// What the handlers do that a context calls on this thread: plumb's loop lets no exception through, so that what they
/// throw is kept for `io_context::run` to throw.
struct handler_calls {
    std::size_t called = 0;
    std::deque<std::exception_ptr> thrown;

    /// Of the context that runs on this thread, or null.
    static inline thread_local constinit handler_calls* here = nullptr;
};

/// Calls a handler. Outside of a context's `run`, as on a thread pool, what it throws ends the process.
template <class F>
void call_handler(F&& handler) noexcept {
    handler_calls* const here = handler_calls::here;
    if (here == nullptr) {
        std::forward<F>(handler)();
        return;
    }
    ++here->called;
    try {
        std::forward<F>(handler)();
    } catch (...) {
        here->thrown.push_back(std::current_exception());
    }
}

/// Lies in a block from plumb's pool, which recycles it.
struct pooled {
    static void* operator new(std::size_t size) {
        if (void* const block = plumb::pooled_allocate(size)) {
            return block;
        }
        throw std::bad_alloc();
    }
    static void operator delete(void* block, std::size_t size) noexcept {
        plumb::pooled_deallocate(block, size);
    }
};

/// A function as work for an executor of plumb; frees itself before it calls it.
template <class F>
class handler_work final : public plumb::owned_work, public pooled {
public:
    explicit handler_work(F f) : owned_work(&handler_work::end), function_(std::move(f)) {}

private:
    static void end(owned_work& self, fate f) noexcept {
        std::unique_ptr<handler_work> owner(static_cast<handler_work*>(&self));
        if (f == fate::run) {
            F function = std::move(owner->function_);
            owner.reset();
            call_handler(function);
        }
    }

    F function_;
};

}  // namespace networking_ts
