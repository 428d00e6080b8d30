// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/executor_ref.hpp>

#include <plumb/exec/work_queue.hpp>

#include <gtest/gtest.h>

#include <coroutine>

namespace plumb::test {
namespace {

/// An executor whose place is a queue.
struct queueing {
    work_queue* place;
    bool inside = false;

    std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const {
        return inside ? h : std::noop_coroutine();
    }
    void post(work* w) const { place->push(*w); }
    [[nodiscard]] bool running_in_this_thread() const { return inside; }
    friend bool operator==(queueing const& a, queueing const& b) { return a.place == b.place; }
};

/// Wraps another at its first byte.
struct wrapping {
    queueing inner;

    std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const { return inner.dispatch(h); }
    void post(work* w) const { inner.post(w); }
    friend bool operator==(wrapping const& a, wrapping const& b) { return a.inner == b.inner; }
};

static_assert(executor<queueing> && executor<wrapping>);
static_assert(!executor<int>);
static_assert(sizeof(executor_ref) == 2 * sizeof(void*));

struct item : work {
    item() : work([](work&) noexcept {}) {}
};

TEST(executor_ref, an_empty_one_is_safe_to_ask_and_to_compare) {
    executor_ref const empty;
    work_queue place;
    queueing const target{&place};
    EXPECT_FALSE(empty);
    EXPECT_FALSE(empty.running_in_this_thread());
    EXPECT_EQ(empty, executor_ref());
    EXPECT_NE(empty, executor_ref(target));
    EXPECT_NE(executor_ref(target), empty);
}

/// A copy of an executor that its context owns.
struct lasting_executor : queueing {
    lasting_executor const* owned;
    [[nodiscard]] lasting_executor const& lasting() const { return *owned; }
};

TEST(executor_ref, outlives_a_copy_of_an_executor_that_lasts) {
    work_queue place;
    lasting_executor owned{{&place}, nullptr};
    owned.owned = &owned;
    executor_ref ref;
    {
        lasting_executor copy = owned;
        ref = copy;
        copy.place = nullptr;
    }
    item i;
    ref.post(&i);
    EXPECT_EQ(place.pop(), &i);
}

TEST(executor_ref, forwards_to_its_executor) {
    work_queue place;
    queueing target{&place};
    executor_ref const ref = target;
    item i;
    ASSERT_TRUE(ref);
    ref.post(&i);
    EXPECT_EQ(place.pop(), &i);
    EXPECT_FALSE(ref.running_in_this_thread());
    EXPECT_EQ(ref.dispatch(nullptr), std::noop_coroutine());
    target.inside = true;
    EXPECT_TRUE(ref.running_in_this_thread());
    EXPECT_EQ(ref.dispatch(nullptr), nullptr);
}

TEST(executor_ref, equals_a_reference_to_an_equal_executor) {
    work_queue place;
    work_queue other_place;
    queueing const a{&place};
    queueing const same{&place};
    queueing const other{&other_place};
    EXPECT_EQ(executor_ref(a), executor_ref(a));
    EXPECT_EQ(executor_ref(a), executor_ref(same));
    EXPECT_NE(executor_ref(a), executor_ref(other));
}

TEST(executor_ref, never_equals_one_of_another_type_at_the_same_address) {
    work_queue place;
    wrapping const outer{{&place}};
    EXPECT_NE(executor_ref(outer), executor_ref(outer.inner));
}

TEST(executor_ref, an_executor_that_cannot_tell_where_it_runs_says_no) {
    work_queue place;
    wrapping const target{{&place, true}};
    EXPECT_FALSE(executor_ref(target).running_in_this_thread());
}

}  // namespace
}  // namespace plumb::test
