// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/explorer.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <iostream>

namespace plumb::model {

/// Every run within the bound is as it should be.
inline void holds(std::function<scenario()> const& make, int preemptions = 2) {
    auto const found = explore({.preemptions = preemptions}, make);
    EXPECT_EQ(found.violation, "");
    EXPECT_TRUE(found.complete) << "more runs than are allowed";
    std::cout << found.runs << " runs\n";
}

/// The checker finds what a mutation of the same code does.
inline void finds(options const& mutated, std::function<scenario()> const& make) {
    EXPECT_NE(explore(mutated, make).violation, "") << "after all runs";
}

inline constexpr options torn_changes{.torn_changes = true};
inline constexpr options lost_wakes{.lost_wakes = true};

}  // namespace plumb::model
