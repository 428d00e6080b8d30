// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/wait_list.hpp>

namespace plumb {

void waiter::on_stop(stop_callback_link& node) noexcept {
    auto& self = static_cast<waiter&>(static_cast<stop_callback_node&>(node));
    {
        std::scoped_lock const locked(self.list_->lock_);
        if (self.phase_ == phase::entering) {
            self.phase_ = phase::cancelled;
            return;
        }
        if (self.phase_ != phase::waiting) {
            return;
        }
        self.list_->remove(self);
        self.phase_ = phase::cancelled;
    }
    self.env_->executor.post(&self);  // the last touch
}

void waiter::end_posted(owned_work& item, fate f) noexcept {
    auto& self = static_cast<waiter&>(item);
    if (f == fate::dropped) {
        self.dropped_ = true;
        return;
    }
    self.unregister();
    std::exchange(self.suspended_, nullptr).resume();
}

void waiter::withdraw() noexcept {
    unregister();
    std::scoped_lock const locked(list_->lock_);
    if (phase_ == phase::waiting) {
        list_->remove(*this);
    } else {
        require(dropped_,
                "a coroutine was destroyed while what it waited for was on its way to it");
    }
    suspended_ = nullptr;
}

void wait_list::push(waiter& w) noexcept {
    w.previous_ = last_;
    w.next_ = nullptr;
    (last_ != nullptr ? last_->next_ : first_) = &w;
    last_ = &w;
    ++size_;
}

void wait_list::remove(waiter& w) noexcept {
    --size_;
    (w.previous_ != nullptr ? w.previous_->next_ : first_) = w.next_;
    (w.next_ != nullptr ? w.next_->previous_ : last_) = w.previous_;
}

void wait_list::grant_first(granted& to) noexcept {
    waiter& w = *first_;
    remove(w);
    w.phase_ = waiter::phase::granted;
    w.next_ = nullptr;
    (to.last_ != nullptr ? to.last_->next_ : to.first_) = &w;
    to.last_ = &w;
}

void wait_list::granted::post() noexcept {
    while (first_ != nullptr) {
        waiter& w = *first_;
        first_ = w.next_;
        w.env_->executor.post(&w);  // the last touch
    }
}

}  // namespace plumb
