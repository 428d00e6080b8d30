// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/manual_executor.hpp>

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/owned_work.hpp>

#include "support/allocations.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>
#include <string>

namespace plumb::test {
namespace {

struct letter : work {
    letter(std::string& to, char c)
        : work([](work& self) noexcept {
              auto& l = static_cast<letter&>(self);
              *l.text += l.which;
          }),
          text(&to),
          which(c) {}
    std::string* text;
    char which;
};

class manual_executor_test : public ::testing::Test {
protected:
    manual_executor loop;
    std::string order;
    letter a{order, 'a'};
    letter b{order, 'b'};
};

TEST_F(manual_executor_test, runs_one_item_at_a_time_in_the_order_of_the_posts) {
    EXPECT_FALSE(loop.run_one());
    loop.get_executor().post(&a);
    loop.get_executor().post(&b);
    EXPECT_EQ(loop.count(), 2u);
    EXPECT_TRUE(loop.run_one());
    EXPECT_EQ(order, "a");
    EXPECT_EQ(loop.count(), 1u);
    EXPECT_TRUE(loop.run_one());
    EXPECT_EQ(order, "ab");
    EXPECT_FALSE(loop.run_one());
}

TEST_F(manual_executor_test, run_also_runs_what_is_posted_meanwhile) {
    struct posting : work {
        posting(manual_executor& l, work& w)
            : work([](work& self) noexcept {
                  auto& p = static_cast<posting&>(self);
                  p.loop->get_executor().post(p.next);
              }),
              loop(&l),
              next(&w) {}
        manual_executor* loop;
        work* next;
    };
    posting first(loop, b);
    loop.get_executor().post(&first);
    loop.get_executor().post(&a);
    EXPECT_EQ(loop.run(), 3u);
    EXPECT_EQ(order, "ab");
}

TEST_F(manual_executor_test, is_inside_only_while_it_runs) {
    struct asking : work {
        explicit asking(manual_executor& l)
            : work([](work& self) noexcept {
                  auto& s = static_cast<asking&>(self);
                  auto const h = std::noop_coroutine();
                  s.inside = s.loop->get_executor().running_in_this_thread() &&
                             s.loop->get_executor().dispatch(h) == h;
              }),
              loop(&l) {}
        manual_executor* loop;
        bool inside = false;
    };
    EXPECT_FALSE(loop.get_executor().running_in_this_thread());
    asking item(loop);
    loop.get_executor().post(&item);
    loop.run();
    EXPECT_TRUE(item.inside);
    EXPECT_FALSE(loop.get_executor().running_in_this_thread());
}

TEST_F(manual_executor_test, a_dispatch_from_outside_is_queued) {
    (void)loop.get_executor().dispatch(std::noop_coroutine());
    EXPECT_EQ(loop.count(), 1u);
    EXPECT_EQ(loop.run(), 1u);
}

TEST_F(manual_executor_test, executors_of_one_context_are_equal) {
    manual_executor other;
    auto const copy = loop.get_executor();
    EXPECT_EQ(copy, loop.get_executor());
    EXPECT_NE(copy, other.get_executor());
    EXPECT_EQ(executor_ref(copy), executor_ref(loop.get_executor()));
}

TEST_F(manual_executor_test, drops_what_is_queued_when_it_ends) {
    struct item : owned_work {
        explicit item(int& d)
            : owned_work([](owned_work& self, fate f) noexcept {
                  *static_cast<item&>(self).dropped += f == fate::dropped ? 1 : 100;
              }),
              dropped(&d) {}
        int* dropped;
    };
    int dropped = 0;
    item owned(dropped);
    {
        manual_executor ends;
        ends.get_executor().post(&owned);
        ends.get_executor().post(&a);
    }
    EXPECT_EQ(dropped, 1);
    EXPECT_EQ(order, "");
}

TEST_F(manual_executor_test, allocates_nothing_for_posts) {
    auto const before = heap_allocations();
    for (int i = 0; i < 8; ++i) {
        loop.get_executor().post(&a);
        loop.run();
    }
    EXPECT_EQ(heap_allocations() - before, 0u);
    EXPECT_EQ(order, "aaaaaaaa");
}

}  // namespace
}  // namespace plumb::test
