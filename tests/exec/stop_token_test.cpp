// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/stop_token.hpp>

#include <plumb/exec/work_inbox.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

/// An executor of one thread that a test runs by hand.
class by_hand {
public:
    struct place {
        work_inbox inbox;
        std::thread::id inside;
    };
    explicit by_hand(place& p) : place_(&p) {}

    std::coroutine_handle<> dispatch(std::coroutine_handle<> h) const { return h; }
    void post(work* w) const { place_->inbox.push(*w); }
    [[nodiscard]] bool running_in_this_thread() const {
        return place_->inside == std::this_thread::get_id();
    }
    friend bool operator==(by_hand const&, by_hand const&) = default;

private:
    place* place_;
};

class stop_token_test : public ::testing::Test {
protected:
    by_hand::place place;
    by_hand executor{place};

    int run_posted() {
        place.inside = std::this_thread::get_id();
        int count = 0;
        for (auto items = place.inbox.take(); work* const item = items.pop(); ++count) {
            (*item)();
        }
        place.inside = {};
        return count;
    }
};

TEST_F(stop_token_test, a_default_one_never_stops) {
    stop_token const never;
    EXPECT_FALSE(never.stop_possible());
    EXPECT_FALSE(never.stop_requested());
    bool called = false;
    stop_callback const watch(never, [&] { called = true; });
    EXPECT_FALSE(called);
    EXPECT_EQ(never, stop_token());
}

TEST_F(stop_token_test, a_request_is_seen_for_ever_and_made_once) {
    stop_source source{executor_ref()};
    auto const token = source.token();
    EXPECT_TRUE(token.stop_possible());
    EXPECT_FALSE(token.stop_requested());
    EXPECT_TRUE(source.request_stop());
    EXPECT_TRUE(token.stop_requested());
    EXPECT_TRUE(source.stop_requested());
    EXPECT_FALSE(source.request_stop());
    EXPECT_EQ(token, source.token());
}

TEST_F(stop_token_test, a_request_from_inside_the_executor_calls_at_once) {
    stop_source source(executor);
    int calls = 0;
    stop_callback const watch(source.token(), [&] { ++calls; });
    place.inside = std::this_thread::get_id();
    source.request_stop();
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(source.busy());
    EXPECT_EQ(run_posted(), 0);
    EXPECT_EQ(calls, 1);
}

TEST_F(stop_token_test, a_request_from_elsewhere_calls_on_the_executor) {
    stop_source source(executor);
    int calls = 0;
    stop_callback const watch(source.token(), [&] {
        EXPECT_TRUE(executor.running_in_this_thread());
        ++calls;
    });
    std::thread([&] { EXPECT_TRUE(source.request_stop()); }).join();
    EXPECT_EQ(calls, 0);
    EXPECT_TRUE(source.busy());
    EXPECT_TRUE(source.stop_requested());
    EXPECT_EQ(run_posted(), 1);
    EXPECT_EQ(calls, 1);
    EXPECT_FALSE(source.busy());
}

TEST_F(stop_token_test, one_of_many_requests_wins) {
    stop_source source(executor);
    std::atomic<int> won = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { won += source.request_stop(); });
    }
    for (auto& t : threads) {
        t.join();
    }
    EXPECT_EQ(won, 1);
    EXPECT_EQ(run_posted(), 1);
}

TEST_F(stop_token_test, a_callback_registered_after_the_request_is_called_at_once) {
    stop_source source{executor_ref()};
    source.request_stop();
    int calls = 0;
    stop_callback const watch(source.token(), [&] { ++calls; });
    EXPECT_EQ(calls, 1);
}

TEST_F(stop_token_test, a_callback_registered_while_the_request_is_posted_is_called_with_it) {
    stop_source source(executor);
    source.request_stop();
    int calls = 0;
    stop_callback const watch(source.token(), [&] { ++calls; });
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(run_posted(), 1);
    EXPECT_EQ(calls, 1);
}

TEST_F(stop_token_test, a_callback_that_is_gone_is_not_called) {
    stop_source source{executor_ref()};
    std::vector<int> called;
    auto const watch = [&](int n) {
        return std::make_unique<stop_callback<std::function<void()>>>(
            source.token(), [&, n] { called.push_back(n); });
    };
    auto a = watch(1);
    auto b = watch(2);
    auto c = watch(3);
    b.reset();  // in the middle
    auto d = watch(4);
    a.reset();  // the oldest
    d.reset();  // the newest
    source.request_stop();
    EXPECT_EQ(called, std::vector{3});
}

TEST_F(stop_token_test, a_callback_may_destroy_itself_and_others) {
    stop_source source{executor_ref()};
    using callback = stop_callback<std::function<void()>>;
    std::unique_ptr<callback> own;
    std::unique_ptr<callback> other;
    int calls = 0;
    auto const destroy = [&] {
        ++calls;
        own.reset();
        other.reset();
    };
    own = std::make_unique<callback>(source.token(), destroy);
    other = std::make_unique<callback>(source.token(), destroy);
    source.request_stop();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(own, nullptr);
    EXPECT_EQ(other, nullptr);
}

TEST_F(stop_token_test, a_callback_may_register_another) {
    stop_source source(executor);
    int calls = 0;
    std::optional<stop_callback<std::function<void()>>> second;
    stop_callback const first(source.token(),
                              [&] { second.emplace(source.token(), [&] { ++calls; }); });
    source.request_stop();
    EXPECT_EQ(run_posted(), 1);
    EXPECT_EQ(calls, 1);
}

TEST_F(stop_token_test, the_source_may_outlive_an_executor_that_drops_its_request) {
    stop_source source(executor);
    bool called = false;
    stop_callback const watch(source.token(), [&] { called = true; });
    source.request_stop();
    ASSERT_TRUE(source.busy());
    for (auto items = place.inbox.take(); work* const item = items.pop();) {
        owned_work::drop(*item);
    }
    EXPECT_FALSE(source.busy());
    EXPECT_FALSE(called);
    EXPECT_TRUE(source.stop_requested());
}

}  // namespace
}  // namespace plumb::test
