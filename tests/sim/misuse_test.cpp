// SPDX-License-Identifier: Apache-2.0
#include <plumb/sim/world.hpp>

#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace plumb::sim {
namespace {

using namespace std::chrono_literals;

class misuse_death_test : public ::testing::Test {
protected:
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(misuse_death_test, of_two_worlds_at_once) {
    world w(1);
    EXPECT_DEATH(world(2), "a simulated world was made while there is one");
}

TEST_F(misuse_death_test, of_handles_that_outlive_the_world) {
    EXPECT_DEATH(
        {
            pipe_handle::ends ends;
            world w(1);
            ends = std::move(*pipe_handle::anonymous_pipe());
        },
        "ended while 2 of its handles were open: close them before");
}

TEST_F(misuse_death_test, of_a_multiplexer_that_outlives_the_world) {
    EXPECT_DEATH(
        {
            std::unique_ptr<io_multiplexer> m;
            world w(1);
            m = std::move(*io_multiplexer::make(multiplexer_kind::sim));
        },
        "ended before a multiplexer that was made in it");
}

TEST_F(misuse_death_test, of_a_multiplexer_from_before_the_world) {
    EXPECT_DEATH(
        {
            auto const m = io_multiplexer::make(multiplexer_kind::epoll).value();
            world w(1);
            (void)m->work_started();
            (void)m->run();
        },
        "a multiplexer of another system was used inside of a simulated world");
}

TEST_F(misuse_death_test, of_the_world_on_another_thread) {
    world w(1);
    auto ends = pipe_handle::anonymous_pipe().value();
    EXPECT_DEATH(std::thread([&] { (void)ends.writer.close(); }).join(),
                 "used on another thread than the one that made it");
}

}  // namespace
}  // namespace plumb::sim
