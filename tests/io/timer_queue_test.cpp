// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/timer_queue.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace plumb::test {
namespace {

TEST(timer_queue, an_empty_one_has_no_first) {
    timer_queue const queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.first(), nullptr);
}

TEST(timer_queue, the_first_is_the_one_that_is_due_first) {
    timer_queue queue;
    timer_node late;
    timer_node early;
    queue.insert(late, 20);
    EXPECT_EQ(queue.first(), &late);
    queue.insert(early, 10);
    EXPECT_EQ(queue.first(), &early);
    EXPECT_EQ(early.due(), 10);
    EXPECT_TRUE(early.queued());
    queue.erase(early);
    EXPECT_FALSE(early.queued());
    EXPECT_EQ(queue.first(), &late);
    queue.erase(late);
    EXPECT_TRUE(queue.empty());
}

TEST(timer_queue, equal_times_come_in_the_order_of_insertion) {
    timer_queue queue;
    std::vector<timer_node> nodes(1000);
    for (auto& node : nodes) {
        queue.insert(node, 7);
    }
    for (auto& node : nodes) {
        ASSERT_EQ(queue.first(), &node);
        queue.erase(node);
    }
    EXPECT_TRUE(queue.empty());
}

TEST(timer_queue, the_ends_of_time_are_times) {
    timer_queue queue;
    timer_node first;
    timer_node last;
    queue.insert(last, std::numeric_limits<std::int64_t>::max());
    queue.insert(first, std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(queue.first(), &first);
    queue.erase(first);
    EXPECT_EQ(queue.first(), &last);
    queue.erase(last);
}

TEST(timer_queue, a_node_can_be_queued_again) {
    timer_queue queue;
    timer_node node;
    for (std::int64_t due = 5; due > 0; --due) {
        queue.insert(node, due);
        EXPECT_EQ(queue.first()->due(), due);
        queue.erase(node);
    }
}

// Random insertions and erasures beside a std::multimap, which also keeps the order of equal keys.
class timer_queue_against_a_multimap : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(range_of_times, timer_queue_against_a_multimap,
                         ::testing::Values(1, 10, 1000, 1 << 30));

TEST_P(timer_queue_against_a_multimap, both_agree) {
    std::mt19937 random(static_cast<unsigned>(GetParam()));
    std::uniform_int_distribution<std::int64_t> any_time(0, GetParam());
    timer_queue queue;
    std::multimap<std::int64_t, timer_node*> model;
    std::vector<std::unique_ptr<timer_node>> nodes(300);
    std::ranges::generate(nodes, [] { return std::make_unique<timer_node>(); });
    std::map<timer_node*, std::multimap<std::int64_t, timer_node*>::iterator> where;

    auto const erase = [&](timer_node& node) {
        queue.erase(node);
        model.erase(where.at(&node));
        where.erase(&node);
    };
    for (int step = 0; step < 50'000; ++step) {
        timer_node& node = *nodes[random() % nodes.size()];
        // Grow and shrink in waves, so that both small and large trees are seen.
        bool const grow = step / 1000 % 2 == 0 ? random() % 4 != 0 : random() % 4 == 0;
        if (node.queued()) {
            if (!grow) {
                erase(node);
            }
        } else if (grow) {
            auto const due = any_time(random);
            queue.insert(node, due);
            where.emplace(&node, model.emplace(due, &node));
        }
        if (!model.empty() && random() % 8 == 0) {
            erase(*model.begin()->second);
        }
        ASSERT_EQ(queue.empty(), model.empty());
        ASSERT_EQ(queue.first(), model.empty() ? nullptr : model.begin()->second)
            << "at step " << step;
        if (step % 500 == 0) {
            ASSERT_TRUE(queue.sound());
        }
    }
    while (!model.empty()) {
        ASSERT_EQ(queue.first(), model.begin()->second);
        ASSERT_TRUE(queue.sound());
        erase(*model.begin()->second);
    }
    EXPECT_TRUE(queue.empty());
}

TEST(timer_queue, sorted_insertions_keep_it_balanced) {
    for (bool const upwards : {true, false}) {
        timer_queue queue;
        std::vector<timer_node> nodes(4096);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            queue.insert(nodes[i], static_cast<std::int64_t>(upwards ? i : nodes.size() - i));
        }
        EXPECT_TRUE(queue.sound());
        // From the side where a node that is erased is the first, and from the other.
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            queue.erase(nodes[i]);
            if (i % 256 == 0) {
                ASSERT_TRUE(queue.sound());
            }
        }
        EXPECT_TRUE(queue.empty());
    }
}

}  // namespace
}  // namespace plumb::test
