// SPDX-License-Identifier: Apache-2.0
#include <plumb/sim/world.hpp>

#include <plumb/base/assert.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include "io/this_thread.hpp"
#include "platform/seam.hpp"
#include "sim/simulated_system.hpp"

#include <string>
#include <utility>

namespace plumb::sim {

/// What `io_multiplexer::this_thread` gives in the world: the one from before is of another system.
class world::thread_multiplexer {
public:
    thread_multiplexer() {
        auto made = io_multiplexer::make(multiplexer_kind::sim);
        require(made.has_value(), "there is no memory for a simulated world");
        made_ = std::move(*made);
        outer_ = std::exchange(this_thread_multiplexer, made_.get());
    }
    thread_multiplexer(thread_multiplexer const&) = delete;
    thread_multiplexer& operator=(thread_multiplexer const&) = delete;
    ~thread_multiplexer() { this_thread_multiplexer = outer_; }

private:
    std::unique_ptr<io_multiplexer> made_;
    io_multiplexer* outer_;
};

world::world(std::uint64_t seed, options const& o)
    : system_(std::make_unique<simulated_system>(seed, o)) {
    require(simulated_system::in_use.load() == nullptr,
            "a simulated world was made while there is one: end that one before");
    simulated_system::in_use.store(system_.get());
    system_->replaced = platform::replace_seam(&simulated_system::table());
    multiplexer_ = std::make_unique<thread_multiplexer>();
}

world::~world() {
    multiplexer_.reset();
    auto const handles = system_->counters().handles_open;
    if (handles != 0 && !system_->options().leaves_handles_open) {
        auto const message =
            "a simulated world was ended while " + std::to_string(handles) +
            " of its handles were open: close them before, or let its options leave them open";
        caller_bug(message.c_str());
    }
    require(system_->pollers_open() == 0, "a simulated world was ended before a multiplexer that "
                                          "was made in it: destroy that one before");
    platform::replace_seam(system_->replaced);
    simulated_system::in_use.store(nullptr);
}

std::uint64_t world::seed() const noexcept { return system_->seed(); }
std::chrono::nanoseconds world::now() const noexcept {
    return std::chrono::nanoseconds(system_->now());
}
world_counters const& world::counters() const noexcept { return system_->counters(); }
std::uint64_t world::fingerprint() const noexcept { return system_->fingerprint(); }

void world::advance(std::chrono::nanoseconds by) {
    if (by.count() > 0) {
        system_->advance(by.count());
    }
}

void world::shift_system_clock(std::chrono::nanoseconds by) noexcept {
    system_->shift_system_clock(by.count());
}

void world::set_silent(endpoint const& where, bool silent) {
    system_->net().set_silent(where, silent);
}

}  // namespace plumb::sim
