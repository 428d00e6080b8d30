// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/stop_token.hpp>

#include <plumb/exec/executor_ref.hpp>
#include <plumb/exec/root_list.hpp>
#include <plumb/exec/work_queue.hpp>

#include <gtest/gtest.h>

#include <coroutine>
#include <memory>

namespace plumb::test {
namespace {

// Each ends the process with a message that says what to do.

struct queueing {
    work_queue* place;
    std::coroutine_handle<> dispatch(std::coroutine_handle<>) const {
        return std::noop_coroutine();
    }
    void post(work* w) const { place->push(*w); }
    friend bool operator==(queueing const&, queueing const&) = default;
};

TEST(exec_misuse, destroying_a_stop_source_whose_request_is_queued) {
    EXPECT_DEATH(
        {
            work_queue place;
            queueing const where{&place};
            stop_source source(where);
            source.request_stop();
        },
        "while its request was in its executor's queue");
}

TEST(exec_misuse, destroying_a_stop_source_that_is_watched) {
    EXPECT_DEATH(
        {
            auto source = std::make_unique<stop_source>(executor_ref());
            auto const on_stop = [] {};
            stop_callback const watch(source->token(), on_stop);
            source.reset();
        },
        "before the operations that watch it");
}

TEST(exec_misuse, destroying_a_list_of_roots_before_its_coroutines) {
    struct root : root_node {
        root() : root_node([](root_node&) noexcept {}, nullptr) {}
    };
    EXPECT_DEATH(
        {
            root node;
            auto list = std::make_unique<root_list>();
            list->add(node);
            list.reset();
        },
        "destroyed before its coroutines");
}

}  // namespace
}  // namespace plumb::test
