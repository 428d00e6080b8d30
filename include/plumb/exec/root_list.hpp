// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/assert.hpp>
#include <plumb/exec/brief_lock.hpp>

#include <utility>

namespace plumb {

class async_frame;
class root_list;
class stop_source;

/// A coroutine that nobody awaits, known to the context that it was launched on.
class root_node {
public:
    root_node(root_node const&) = delete;
    root_node& operator=(root_node const&) = delete;

    /// Destroys the coroutine where it is suspended.
    void destroy() noexcept { destroy_(*this); }

    /// What is known of it from outside; null where it is none of plumb's coroutines.
    [[nodiscard]] async_frame const* frame() const noexcept { return frame_; }
    /// The one that was launched next after it, or null.
    [[nodiscard]] root_node const* next() const noexcept { return next_; }

protected:
    using destroy_function = void (*)(root_node&) noexcept;
    /// @param stopped_by  the source of the stop token that it was launched with, or null
    root_node(destroy_function on_destroy, stop_source const* stopped_by,
              async_frame const* frame = nullptr) noexcept
        : destroy_(on_destroy), stopped_by_(stopped_by), frame_(frame) {}
    inline ~root_node();

private:
    friend root_list;
    root_list* list_ = nullptr;
    root_node* previous_ = nullptr;
    root_node* next_ = nullptr;
    destroy_function destroy_;
    stop_source const* stopped_by_;
    async_frame const* frame_;
};

/// The roots of a context, oldest first. Threads: the context's, and where that has several, for `add` and `remove`, all
/// of them at once; the rest when none runs. Allocates: never.
class root_list {
public:
    /// @param concurrent  whether several threads use it
    explicit root_list(bool concurrent = false) noexcept : concurrent_(concurrent) {}
    root_list(root_list const&) = delete;
    root_list& operator=(root_list const&) = delete;
    ~root_list() {
        require(first_ == nullptr, "a context's list of roots was destroyed before its coroutines");
    }

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    /// The oldest, or null. Where it is concurrent: while no thread runs.
    [[nodiscard]] root_node const* first() const noexcept { return first_; }

    void add(root_node& node) noexcept {
        guard const locked(*this);
        node.list_ = this;
        node.previous_ = last_;
        (last_ != nullptr ? last_->next_ : first_) = &node;
        last_ = &node;
    }

    void remove(root_node& node) noexcept {
        guard const locked(*this);
        (node.previous_ != nullptr ? node.previous_->next_ : first_) = node.next_;
        (node.next_ != nullptr ? node.next_->previous_ : last_) = node.previous_;
        node.list_ = nullptr;
        node.previous_ = nullptr;
        node.next_ = nullptr;
    }

    /// Destroys the youngest first: those that it launched last may use what older ones own.
    void destroy_all() noexcept {
        while (destroy_youngest()) {
        }
    }

    /// For a context that ends, with all of its coroutines. @return false where there is none
    bool destroy_youngest() noexcept {
        if (last_ == nullptr) {
            return false;
        }
        bool const outer = std::exchange(ending_, true);
        ++endings_here;
        last_->destroy();
        --endings_here;
        ending_ = outer;
        return true;
    }

    /// Whether a coroutine is being destroyed by the end of its context, on this thread.
    [[nodiscard]] static bool any_ends() noexcept { return endings_here != 0; }
    /// Whether it is one of this context, where nobody will go on any more.
    [[nodiscard]] bool ends() const noexcept { return ending_; }

    /// Destroys the youngest, unless none is left that was launched with a stop token of `source`: so until it returns
    /// false it ends the oldest of those and all that came after it.
    bool destroy_youngest_since(stop_source const& source) noexcept {
        for (root_node* node = first_; node != nullptr; node = node->next_) {
            if (node->stopped_by_ == &source) {
                last_->destroy();
                return true;
            }
        }
        return false;
    }

private:
    class guard {
    public:
        explicit guard(root_list& list) noexcept : lock_(list.concurrent_ ? &list.lock_ : nullptr) {
            if (lock_ != nullptr) {
                lock_->lock();
            }
        }
        guard(guard const&) = delete;
        guard& operator=(guard const&) = delete;
        ~guard() {
            if (lock_ != nullptr) {
                lock_->unlock();
            }
        }

    private:
        brief_lock* lock_;
    };

    root_node* first_ = nullptr;
    root_node* last_ = nullptr;
    bool const concurrent_;
    brief_lock lock_;  // where it is concurrent
    bool ending_ = false;
    static inline constinit thread_local int endings_here = 0;
};

root_node::~root_node() {
    if (list_ != nullptr) {
        list_->remove(*this);
    }
}

}  // namespace plumb
