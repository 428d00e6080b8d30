// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>

#include "platform/seam.hpp"
#include "sim/poller.hpp"
#include "sim/random.hpp"
#include "sim/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace plumb::sim {

using platform::failed_with;
using platform::outcome;

/// The bits of poll(2).
enum poll_bits : std::uint32_t {
    can_read = 1,
    can_write = 2,
    /// The peer has sent its last byte.
    read_ended = 4,
    hung_up = 8,
    failed = 16,
};

/// What every node of a world shares.
struct surroundings {
    timeline time;
    random pick;
    bool short_transfers;
    std::size_t socket_buffer;
    std::int64_t least_latency;
    std::int64_t most_latency;
    std::uint64_t connections = 0;
    std::uint64_t datagrams_dropped = 0;

    /// How long what one socket sends is under way.
    std::int64_t latency() noexcept {
        auto const spread = static_cast<std::uint64_t>(most_latency - least_latency);
        return least_latency +
               (spread != 0 ? static_cast<std::int64_t>(pick.below(spread + 1)) : 0);
    }

    /// How many of the bytes that could be moved are moved by this call.
    std::size_t shortened(std::size_t n) noexcept {
        return short_transfers && n > 1 && pick.below(2) == 0
                   ? 1 + static_cast<std::size_t>(pick.below(n))
                   : n;
    }
};

/// What a simulated handle names: an end of a pipe or a socket. What it isn't, fails as on Linux.
class node {
public:
    virtual ~node() = default;

    /// @return its poll_bits now
    [[nodiscard]] virtual std::uint32_t state() const noexcept = 0;

    /// @return how many bytes were moved, at least one
    virtual outcome read(std::span<buffer const>);
    virtual outcome write(std::span<const_buffer const>);
    virtual outcome send(std::span<const_buffer const>, endpoint const& to);
    virtual outcome receive(std::span<buffer const>, endpoint& from);
    [[nodiscard]] virtual platform::native_kind what() const noexcept = 0;
    /// The last handle is gone.
    virtual void close() = 0;

    virtual outcome bind(endpoint const&);
    virtual outcome listen(int backlog);
    virtual outcome connect(endpoint const&);
    virtual outcome connect_outcome();
    virtual outcome shutdown_write();
    virtual outcome set_option(platform::socket_option, int value);
    virtual outcome set_membership(endpoint const& group, bool member);
    virtual outcome local_endpoint(endpoint&) const;
    virtual outcome peer_endpoint(endpoint&) const;
    /// Whether connections are accepted from it: 0, or minus the error.
    [[nodiscard]] virtual outcome accepts() const;
    /// @return a connection, or null
    virtual std::shared_ptr<node> accept();

    [[nodiscard]] bool is_socket() const noexcept { return what() != platform::native_kind::pipe; }
    /// How many handles name it.
    int handles = 0;

    outcome watch(std::shared_ptr<poller> const& by, native_handle h, std::uint64_t key);
    outcome unwatch(poller const& by, native_handle h);
    void unwatch_all() noexcept;

protected:
    /// Tells the pollers that its state has changed.
    void changed();

private:
    std::vector<std::shared_ptr<watching>> watchers_;
};

}  // namespace plumb::sim
