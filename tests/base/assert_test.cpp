// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/assert.hpp>

#include <gtest/gtest.h>

namespace {

using namespace plumb;

TEST(assertion, require_lets_a_kept_contract_pass) {
    require(true, "not said");
    static_assert((require(true, "not said"), true), "it can be used in constant expressions");
}

TEST(assertion_death_test, require_says_what_to_do_and_ends_the_process) {
    EXPECT_DEATH(require(false, "close it first"), "plumb: close it first");
    EXPECT_DEATH(caller_bug("moved after its start"), "plumb: moved after its start");
}

TEST(assertion_death_test,
     assert_names_the_broken_invariant_in_debug_and_is_not_evaluated_in_release) {
    int evaluated = 0;
    PLUMB_ASSERT(++evaluated == 1);
#ifdef NDEBUG
    EXPECT_EQ(evaluated, 0);
#else
    EXPECT_EQ(evaluated, 1);
    EXPECT_DEATH(PLUMB_ASSERT(evaluated == 2),
                 "assert_test.cpp:.*: broken invariant: evaluated == 2");
#endif
}

}  // namespace
