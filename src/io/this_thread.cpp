// SPDX-License-Identifier: Apache-2.0
#include "io/this_thread.hpp"

#include <plumb/base/assert.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include "exec/pool_queues.hpp"

namespace plumb {

constinit thread_local io_multiplexer* this_thread_multiplexer = nullptr;

namespace {

struct own_multiplexer {
    std::unique_ptr<io_multiplexer> made;
    ~own_multiplexer() {
        if (this_thread_multiplexer == made.get()) {
            this_thread_multiplexer = nullptr;
        }
    }
};

}  // namespace

io_multiplexer& io_multiplexer::this_thread() noexcept {
    if (this_thread_multiplexer == nullptr) {
        require(
            !pool_queues::any_running_in_this_thread(),
            "i/o or a timer was begun on a thread of a thread_pool, which drives no multiplexer: "
            "await it by run_on on the executor of an io_context");
        static thread_local own_multiplexer own;
        if (own.made == nullptr) {
            auto best = best_available(1);
            require(best.has_value(),
                    "no i/o multiplexer can be had on this machine for this thread");
            own.made = std::move(*best);
        }
        this_thread_multiplexer = own.made.get();
    }
    return *this_thread_multiplexer;
}

}  // namespace plumb
