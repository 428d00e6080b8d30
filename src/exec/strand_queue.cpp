// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/strand_queue.hpp>

namespace plumb {
namespace {

/// The strands that this thread is inside of, innermost first: a strand may run on another.
struct inside {
    strand_queue const* strand;
    inside const* outer;
};

constinit thread_local inside const* innermost = nullptr;

}  // namespace

bool strand_queue::push(work& w) noexcept {
    // Counted first, so that whoever runs never takes more than was counted.
    bool const idle = pending_.fetch_add(1) == 0;
    if (idle) {
        retain();
    }
    inbox_.push(w);
    return idle;
}

bool strand_queue::running_in_this_thread() const noexcept {
    for (auto const* i = innermost; i != nullptr; i = i->outer) {
        if (i->strand == this) {
            return true;
        }
    }
    return false;
}

bool strand_queue::run_batch() noexcept {
    std::size_t ran = 0;
    inside const here{this, innermost};
    innermost = &here;
    while (ran < batch) {
        if (queue_.empty()) {
            queue_.splice(inbox_.take());
        }
        work* const item = queue_.pop();
        if (item == nullptr) {
            break;  // all, or the rest was counted and is about to be pushed
        }
        (*item)();
        ++ran;
    }
    innermost = here.outer;
    return pending_.fetch_sub(ran) != ran;
}

void strand_queue::drop_all() noexcept {
    std::size_t dropped;
    do {
        dropped = 0;
        queue_.splice(inbox_.take());
        while (work* const item = queue_.pop()) {
            drop(*item);
            ++dropped;
        }
    } while (pending_.fetch_sub(dropped) != dropped);
}

}  // namespace plumb
