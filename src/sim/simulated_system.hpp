// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/sim/world.hpp>

#include "platform/seam.hpp"
#include "sim/network.hpp"
#include "sim/node.hpp"
#include "sim/poller.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

namespace plumb::sim {

/// A system in memory: handles, pollers, clocks. Its seam's functions find it while it is the one
/// in use.
///
/// Native handles carry a bit that descriptors of the real system don't reach, so that one system's
/// are unknown to the other. Threads: the one that made it; `wake` from any, also from signal
/// handlers.
class simulated_system {
public:
    simulated_system(std::uint64_t seed, world::options const& o);
    simulated_system(simulated_system const&) = delete;
    simulated_system& operator=(simulated_system const&) = delete;

    [[nodiscard]] static platform::seam const& table() noexcept;
    /// The one in use; null: none.
    static std::atomic<simulated_system*> in_use;
    /// What was in use before.
    platform::seam const* replaced = nullptr;

    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] std::int64_t now() const noexcept { return around_.time.now(); }
    [[nodiscard]] world_counters const& counters() noexcept;
    [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }
    [[nodiscard]] world::options const& options() const noexcept { return options_; }
    [[nodiscard]] network& net() noexcept { return network_; }
    [[nodiscard]] std::size_t pollers_open() const noexcept;
    void advance(std::int64_t by) {
        around_.time.advance_to(by < timeline::never - now() ? now() + by : timeline::never);
    }
    void shift_system_clock(std::int64_t by) noexcept { system_start_ += by; }

private:
    struct calls;
    friend calls;

    static constexpr native_handle handle_bit = native_handle{1} << 30;
    static constexpr native_handle poller_bit = native_handle{1} << 29;
    static constexpr std::size_t most_pollers = 256;
    /// Where the steady clock begins, so that there is time before the start.
    static constexpr std::int64_t steady_start = 1'000'000'000'000'000;

    /// A program may wait so often in a row without having to, before each further time takes this.
    static constexpr std::uint64_t timeless_turns = 1000;
    static constexpr std::int64_t busy_turn = 1000;

    [[nodiscard]] node* find(native_handle h) const noexcept;
    [[nodiscard]] bool has_room_for(std::size_t handles) const noexcept;
    native_handle open(std::shared_ptr<node> n);
    outcome open_both(std::pair<std::shared_ptr<node>, std::shared_ptr<node>> const& nodes,
                      native_handle (&ends)[2]);
    outcome close(native_handle h);

    [[nodiscard]] std::shared_ptr<poller> const& find_poller(native_handle p) const noexcept;
    outcome open_poller();
    void close_poller(native_handle p) noexcept;
    outcome wait(native_handle p, platform::poll_event* events, std::size_t capacity,
                 std::int64_t timeout);
    outcome await_ready(native_handle h, std::uint32_t what, std::int64_t timeout);
    void wake(native_handle p) noexcept;

    template <class Ready>
    outcome pass_time(std::int64_t timeout, Ready ready);

    void mix(std::uint64_t value) noexcept;
    void mix_bytes(std::byte const* bytes, std::size_t size) noexcept;
    /// Adds a call to the fingerprint. @return the outcome
    outcome note(int call, native_handle h, outcome o) noexcept;

    std::uint64_t const seed_;
    world::options const options_;
    void const* const thread_;
    std::int64_t system_start_;
    surroundings around_;
    network network_;
    std::unordered_map<native_handle, std::shared_ptr<node>> handles_;
    native_handle next_number_ = 0;
    std::priority_queue<native_handle, std::vector<native_handle>, std::greater<>> free_numbers_;
    std::array<std::shared_ptr<poller>, most_pollers> pollers_;
    std::array<std::atomic<bool>, most_pollers> woken_{};
    std::uint64_t busy_turns_ = 0;
    world_counters counters_;
    std::uint64_t fingerprint_ = 14'695'981'039'346'656'037u;
};

}  // namespace plumb::sim
