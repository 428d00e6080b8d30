// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

/// Runs small cases of the library's own code under all interleavings of its atomic operations.
///
/// One thread runs at a time; at each operation of a `plumb::atomic` the explorer chooses who goes on, and it runs
/// the case again until it has made every choice: depth first, without memory between runs but for the choices. What
/// one run does is therefore decided by its choices alone. Memory is sequentially consistent, and what happens between
/// two such operations happens at once: races on other memory are the thread sanitizer's to find.
namespace plumb::model {

/// What runs at once, and what must hold when all of them have ended.
struct scenario {
    std::vector<std::function<void()>> threads;
    std::function<void()> at_end = [] {};
};

struct options {
    /// How often a run may take the turn from a thread that could go on. Turns of a thread that waits or ends, and
    /// of one that did 100 steps in a row, are free.
    int preemptions = 2;
    /// Mutations of the code: read-modify-writes that aren't atomic, and notifications that wake nobody.
    bool torn_changes = false;
    bool lost_wakes = false;
    long most_runs = 2'000'000;
};

struct outcome {
    std::string violation;  // empty where none was found
    long runs = 0;
    bool complete = false;  // whether every choice was made
};

/// Makes the scenario anew for each run, and destroys it at its end.
outcome explore(options const& o, std::function<scenario()> const& make);

// From inside of a scenario's threads.

/// Fails the run unless `holds`.
void expect(bool holds, char const* what);
/// Goes on once `condition` holds, which others bring about.
void await(std::function<bool()> condition);

// By `plumb::atomic`.

void point() noexcept;
void sleep(void const* on) noexcept;
void wake(void const* on, bool all) noexcept;
[[nodiscard]] bool torn() noexcept;

}  // namespace plumb::model
