// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/work.hpp>

#include <utility>

namespace plumb {

/// A first-in first-out list of work that belongs to others. Each operation is O(1) and allocates nothing.
/// Threads: one at a time.
class work_queue {
public:
    constexpr work_queue() noexcept = default;

    work_queue(work_queue&& other) noexcept
        : head_(std::exchange(other.head_, nullptr)), tail_(std::exchange(other.tail_, nullptr)) {}

    work_queue& operator=(work_queue&&) = delete;

    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

    void push(work& item) noexcept {
        item.next_ = nullptr;
        (tail_ != nullptr ? tail_->next_ : head_) = &item;
        tail_ = &item;
    }

    /// @return the oldest item, or null when the queue is empty
    work* pop() noexcept {
        work* const item = head_;
        if (item != nullptr) {
            head_ = item->next_;
            if (head_ == nullptr) {
                tail_ = nullptr;
            }
        }
        return item;
    }

    /// Appends all of `other`, which is empty afterwards.
    void splice(work_queue&& other) noexcept {
        if (other.head_ == nullptr) {
            return;
        }
        (tail_ != nullptr ? tail_->next_ : head_) = other.head_;
        tail_ = std::exchange(other.tail_, nullptr);
        other.head_ = nullptr;
    }

private:
    work* head_ = nullptr;
    work* tail_ = nullptr;
};

}  // namespace plumb
