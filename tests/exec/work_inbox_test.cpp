// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/work_inbox.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

struct item : work {
    item() : work([](work&) noexcept {}) {}
    int producer = 0;
    int number = 0;
};

TEST(work_inbox, gives_everything_once_and_oldest_first) {
    work_inbox inbox;
    std::array<item, 3> items;
    EXPECT_TRUE(inbox.empty());
    EXPECT_TRUE(inbox.take().empty());
    for (auto& i : items) {
        inbox.push(i);
    }
    EXPECT_FALSE(inbox.empty());
    auto taken = inbox.take();
    EXPECT_TRUE(inbox.empty());
    for (auto& i : items) {
        EXPECT_EQ(taken.pop(), &i);
    }
    EXPECT_TRUE(taken.empty());
}

TEST(work_inbox, loses_nothing_of_several_threads_and_keeps_the_order_of_each) {
    constexpr int producers = 3;
    constexpr int each = 20'000;
    work_inbox inbox;
    std::vector<std::vector<item>> items(producers, std::vector<item>(each));
    std::vector<std::thread> threads;
    for (int p = 0; p < producers; ++p) {
        threads.emplace_back([&, p] {
            for (int n = 0; n < each; ++n) {
                auto& i = items[static_cast<std::size_t>(p)][static_cast<std::size_t>(n)];
                i.producer = p;
                i.number = n;
                inbox.push(i);
            }
        });
    }
    std::array<int, producers> next{};
    for (int seen = 0; seen < producers * each;) {
        auto taken = inbox.take();
        while (work* const w = taken.pop()) {
            auto const& i = static_cast<item&>(*w);
            ASSERT_EQ(i.number, next[static_cast<std::size_t>(i.producer)]++);
            ++seen;
        }
    }
    EXPECT_TRUE(inbox.empty());
    for (auto& t : threads) {
        t.join();
    }
}

}  // namespace
}  // namespace plumb::test
