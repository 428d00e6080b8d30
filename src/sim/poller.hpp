// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"
#include "sim/random.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace plumb::sim {

class node;
class poller;

/// One node that is watched by one poller.
struct watching {
    node const* target;  // null when it isn't watched any more
    std::weak_ptr<poller> by;
    native_handle handle;
    std::uint64_t key;
    bool queued = false;
};

/// Reports changes of readiness, each once. Threads: one at a time.
class poller {
public:
    /// The state of what is watched has changed, or it has just begun to be watched.
    void changed(std::shared_ptr<watching> const& w);

    /// Reports some of what has changed and is ready, in an order picked by `pick`.
    /// @param capacity  not 0
    /// @return how many; 0 only if nothing is ready
    std::size_t take(platform::poll_event* events, std::size_t capacity, random& pick);

private:
    std::vector<std::shared_ptr<watching>> queue_;
};

}  // namespace plumb::sim
