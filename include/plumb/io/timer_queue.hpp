// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace plumb {

class timer_queue;

/// A point in time that can be queued; embedded in whatever waits for it.
class timer_node {
public:
    timer_node() noexcept { mark_unqueued(); }

    [[nodiscard]] bool queued() const noexcept { return queued_; }
    /// @return when it is due, in ns of the queue's clock
    [[nodiscard]] std::int64_t due() const noexcept { return due_; }

protected:
    /// For what is made often and queued seldom: marked before it is first looked at.
    struct unmarked {};
    explicit timer_node(unmarked) noexcept {}  // NOLINT: see above
    void mark_unqueued() noexcept { queued_ = false; }

private:
    friend timer_queue;

    // Not initialised before it is queued.
    timer_node* parent_;
    timer_node* left_;
    timer_node* right_;
    std::int64_t due_;
    bool red_;
    bool queued_;
};

/// Timers in the order in which they are due: an intrusive red-black tree with its first node cached. Equal times
/// keep the order of insertion.
/// Complexity: insert and erase O(log n), first O(1). Threads: one at a time. Allocates: never.
class timer_queue {
public:
    constexpr timer_queue() noexcept = default;
    timer_queue(timer_queue const&) = delete;
    timer_queue& operator=(timer_queue const&) = delete;

    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    /// @return the node that is due first, or null
    [[nodiscard]] timer_node* first() const noexcept { return first_; }

    /// @param due  ns of the queue's clock
    void insert(timer_node& node, std::int64_t due) noexcept;
    /// Not on a node that isn't queued here.
    void erase(timer_node& node) noexcept;

    /// For tests: whether order, colours and links are as a red-black tree's. O(n).
    [[nodiscard]] bool sound() const noexcept;

private:
    static int black_height(timer_node const* node) noexcept;
    void rotate(timer_node& node, bool to_left) noexcept;
    void replace(timer_node const& node, timer_node* with) noexcept;
    void mend_after_insert(timer_node* node) noexcept;
    void mend_after_erase(timer_node* node, timer_node* parent) noexcept;

    timer_node* root_ = nullptr;
    timer_node* first_ = nullptr;
};

}  // namespace plumb
