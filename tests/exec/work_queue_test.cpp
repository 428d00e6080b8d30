// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/work_queue.hpp>

#include <plumb/exec/owned_work.hpp>

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

struct item : work {
    item() : work([](work& w) noexcept { ++static_cast<item&>(w).runs; }) {}
    int runs = 0;
};

TEST(work, runs_the_function_it_was_made_with) {
    item i;
    i();
    i();
    EXPECT_EQ(i.runs, 2);
}

TEST(work_queue, gives_items_in_the_order_in_which_they_came) {
    work_queue queue;
    std::array<item, 3> items;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.pop(), nullptr);
    for (auto& i : items) {
        queue.push(i);
    }
    EXPECT_FALSE(queue.empty());
    for (auto& i : items) {
        EXPECT_EQ(queue.pop(), &i);
    }
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.pop(), nullptr);
}

TEST(work_queue, an_item_may_be_queued_again_once_it_is_out) {
    work_queue queue;
    item i;
    for (int n = 0; n < 3; ++n) {
        queue.push(i);
        EXPECT_EQ(queue.pop(), &i);
    }
    EXPECT_TRUE(queue.empty());
}

TEST(work_queue, splice_appends_and_empties_the_other) {
    std::array<item, 4> items;
    for (int in_first = 0; in_first <= 4; ++in_first) {
        work_queue first;
        work_queue second;
        for (int n = 0; n < 4; ++n) {
            (n < in_first ? first : second).push(items[static_cast<std::size_t>(n)]);
        }
        first.splice(std::move(second));
        EXPECT_TRUE(second.empty());  // NOLINT: said to be empty
        for (auto& i : items) {
            EXPECT_EQ(first.pop(), &i);
        }
        item more;
        first.push(more);
        second.push(items[0]);
        EXPECT_EQ(first.pop(), &more);
        EXPECT_EQ(second.pop(), &items[0]);
    }
}

TEST(work_queue, moving_leaves_an_empty_queue_that_works) {
    work_queue from;
    std::array<item, 2> items;
    from.push(items[0]);
    work_queue to(std::move(from));
    EXPECT_TRUE(from.empty());  // NOLINT: said to be empty
    from.push(items[1]);
    EXPECT_EQ(to.pop(), &items[0]);
    EXPECT_EQ(from.pop(), &items[1]);
}

struct fated : owned_work {
    explicit fated(std::vector<fate>& into)
        : owned_work([](owned_work& w, fate f) noexcept {
              auto* const self = static_cast<fated*>(&w);
              self->fates.push_back(f);
              delete self;
          }),
          fates(into) {}
    std::vector<fate>& fates;
};

TEST(owned_work, is_either_run_or_dropped) {
    std::vector<owned_work::fate> fates;
    work& run = *new fated(fates);
    work& dropped = *new fated(fates);
    run();
    owned_work::drop(dropped);
    EXPECT_EQ(fates, (std::vector{owned_work::fate::run, owned_work::fate::dropped}));
}

TEST(owned_work, dropping_work_of_another_owner_leaves_it_alone) {
    item i;
    owned_work::drop(i);
    EXPECT_EQ(i.runs, 0);
}

}  // namespace
}  // namespace plumb::test
