// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/wait_list.hpp>

#include <algorithm>
#include <functional>

namespace plumb {

waiter& waiter::join(std::span<waiter*> all) noexcept {
    std::ranges::sort(all, std::less<>(), [](waiter const* w) { return &w->lock(); });
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i]->lead_ = all[0];
        all[i]->next_case_ = i + 1 < all.size() ? all[i + 1] : nullptr;
    }
    return *all[0];
}

void waiter::part() noexcept {
    if (suspended_) {
        withdraw();
    }
    for (waiter* w = this; w != nullptr; w = std::exchange(w->next_case_, nullptr)) {
        w->lead_ = w;
        w->dropped_ = dropped_;
    }
}

void waiter::on_stop(stop_callback_link& node) noexcept {
    auto& self = static_cast<waiter&>(static_cast<stop_callback_node&>(node));
    {
        locks const locked(self);
        if (self.now() == phase::entering) {
            self.become(phase::cancelled);
            return;
        }
        if (self.now() != phase::waiting) {
            return;
        }
        self.leave_lists();
        self.become(phase::cancelled);
    }
    self.post();
}

/// The last touch.
void waiter::post() noexcept {
    executor_ref const& where = env_->executor;
    if (root_list::any_ends()) [[unlikely]] {
        if (root_list const* const roots = where.roots(); roots != nullptr && roots->ends()) {
            owned_work::drop(*this);
            return;
        }
    }
    where.post(this);
}

void waiter::end_posted(owned_work& item, fate f) noexcept {
    auto& self = static_cast<waiter&>(item);
    if (f == fate::dropped) {
        self.dropped_ = true;
        return;
    }
    self.unregister();
    if (self.next_case_ != nullptr) {
        locks const locked(self);
        self.leave_lists();
    }
    if (self.frame_ != nullptr) {
        self.frame_->goes_on();
    }
    std::exchange(self.suspended_, nullptr).resume();
}

void waiter::leave_lists() noexcept {
    for (waiter* w = this; w != nullptr; w = w->next_case_) {
        if (w->listed_) {
            w->list_->remove(*w);
        }
    }
}

void waiter::withdraw() noexcept {
    unregister();
    locks const locked(*this);
    require(now() == phase::waiting || dropped_,
            "a coroutine was destroyed while what it waited for was on its way to it");
    leave_lists();
    suspended_ = nullptr;
}

void wait_list::push(waiter& w) noexcept {
    w.listed_ = true;
    w.previous_ = last_;
    w.next_ = nullptr;
    (last_ != nullptr ? last_->next_ : first_) = &w;
    last_ = &w;
    ++size_;
}

void wait_list::remove(waiter& w) noexcept {
    w.listed_ = false;
    --size_;
    (w.previous_ != nullptr ? w.previous_->next_ : first_) = w.next_;
    (w.next_ != nullptr ? w.next_->previous_ : last_) = w.previous_;
}

waiter* wait_list::grant_first(granted& to) noexcept {
    while (first_ != nullptr) {
        waiter& w = *first_;
        remove(w);
        auto waits = waiter::phase::waiting;
        if (w.lead_->phase_.compare_exchange_strong(waits, waiter::phase::granted)) {
            w.granted_ = true;
            w.next_ = nullptr;
            (to.last_ != nullptr ? to.last_->next_ : to.first_) = &w;
            to.last_ = &w;
            return &w;
        }
    }
    return nullptr;
}

void wait_list::granted::post() noexcept {
    while (first_ != nullptr) {
        waiter& w = *first_;
        first_ = w.next_;
        w.lead_->post();
    }
}

}  // namespace plumb
