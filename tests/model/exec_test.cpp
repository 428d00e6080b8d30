// SPDX-License-Identifier: Apache-2.0
#include <plumb/exec/strand.hpp>
#include <plumb/exec/work_inbox.hpp>

#include "exec/pool_queues.hpp"
#include "exec/work_deque.hpp"
#include "model/case.hpp"
#include "model/crowd.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace plumb::model {
namespace {

/// Counts how often it was run or taken, and says in which order.
struct item : work {
    item() noexcept : work([](work& self) noexcept { static_cast<item&>(self).run(); }) {}
    void run() noexcept {
        ++runs;
        if (then) {
            then();
        }
    }
    int runs = 0;
    std::function<void()> then;
};

template <std::size_t N>
struct items : std::array<item, N> {
    [[nodiscard]] bool each_once() const {
        for (item const& i : *this) {
            if (i.runs != 1) {
                return false;
            }
        }
        return true;
    }
};

// work_inbox

scenario inbox_with_two_producers() {
    struct state {
        work_inbox inbox;
        items<4> posted;
        std::vector<work*> taken;
        void take() {
            for (auto some = inbox.take(); work* const w = some.pop();) {
                taken.push_back(w);
                (*w)();
            }
        }
    };
    auto s = std::make_shared<state>();
    auto const produce = [s](std::size_t first) {
        s->inbox.push(s->posted[first]);
        s->inbox.push(s->posted[first + 1]);
    };
    return {.threads = {[=] { produce(0); }, [=] { produce(2); },
                        [s] {
                            s->take();
                            s->take();
                        }},
            .at_end = [s] {
                s->take();
                expect(s->posted.each_once(), "an item was lost, or taken twice");
                for (std::size_t first : {0u, 2u}) {
                    auto const at = [&](std::size_t i) {
                        return std::find(s->taken.begin(), s->taken.end(), &s->posted[i]);
                    };
                    expect(at(first) < at(first + 1), "items of one producer changed places");
                }
            }};
}

TEST(model, an_inbox_loses_nothing_and_keeps_each_producers_order) {
    holds(inbox_with_two_producers, 3);
}
TEST(model, an_inbox_whose_changes_are_torn_is_found) {
    finds(torn_changes, inbox_with_two_producers);
}

// work_deque

scenario deque_with_thieves(int thieves) {
    struct state {
        work_deque queue;
        items<3> posted;
    };
    auto s = std::make_shared<state>();
    auto const take = [](work* w) {
        if (w != nullptr) {
            (*w)();
        }
    };
    scenario made;
    made.threads.push_back([=] {
        expect(s->queue.push(s->posted[0]), "full");
        expect(s->queue.push(s->posted[1]), "full");
        take(s->queue.pop());
        expect(s->queue.push(s->posted[2]), "full");
        take(s->queue.pop());
        take(s->queue.pop());
    });
    for (int t = 0; t < thieves; ++t) {
        made.threads.push_back([=] {
            take(s->queue.steal());
            take(s->queue.steal());
        });
    }
    made.at_end = [=] {
        take(s->queue.pop());
        expect(s->posted.each_once(), "an item was lost, or taken twice");
        expect(s->queue.empty(), "something is left");
    };
    return made;
}

TEST(model, a_deque_gives_each_item_to_its_owner_or_to_one_thief) {
    holds([] { return deque_with_thieves(1); }, 3);
    holds([] { return deque_with_thieves(2); });
}
TEST(model, a_deque_whose_changes_are_torn_is_found) {
    finds(torn_changes, [] { return deque_with_thieves(1); });
}

// pool_queues

/// Two workers, and a thread from which two items come; the first posts one more, which may be stolen.
scenario pool(pool_queues::phase end) {
    struct state {
        pool_queues queues{2};
        items<3> posted;
    };
    auto s = std::make_shared<state>();
    s->posted[0].then = [s = s.get()] {
        expect(s->queues.running_in_this_thread(), "run elsewhere");
        s->queues.post(s->posted[2]);
    };
    return {.threads = {[s] { s->queues.work_here(0); }, [s] { s->queues.work_here(1); },
                        [s, end] {
                            s->queues.post(s->posted[0]);
                            s->queues.post(s->posted[1]);
                            s->queues.go(end);
                        }},
            .at_end = [s, end] {
                bool const all_ran = s->posted.each_once();
                expect(all_ran || end == pool_queues::phase::ended, "it ended before its work");
                pool_queues::remains left(s->queues);
                while (work* const w = left.take()) {
                    auto& i = static_cast<item&>(*w);
                    expect(!all_ran, "an item is left that was run");
                    ++i.runs;
                }
                // The first one posts the third only if it is run.
                bool const third = s->posted[2].runs == 1 || end == pool_queues::phase::ended;
                expect(s->posted[0].runs == 1 && s->posted[1].runs == 1 && third &&
                           s->posted[2].runs <= 1,
                       "an item was lost, or run twice");
            }};
}

scenario joined_pool() { return pool(pool_queues::phase::joining); }
scenario stopped_pool() { return pool(pool_queues::phase::ended); }

TEST(model, a_pool_that_is_joined_runs_all_and_all_of_its_threads_end) { holds(joined_pool); }
TEST(model, a_pool_that_is_stopped_keeps_what_was_not_run) { holds(stopped_pool); }
TEST(model, a_pool_whose_threads_are_not_woken_is_found) { finds(lost_wakes, joined_pool); }
TEST(model, a_pool_whose_changes_are_torn_is_found) { finds(torn_changes, joined_pool); }

/// Work that is counted keeps it from ending; what comes last comes from elsewhere.
scenario pool_that_waits_for_counted_work() {
    struct state {
        pool_queues queues{1};
        items<1> posted;
    };
    auto s = std::make_shared<state>();
    s->queues.count_work(1);
    return {.threads = {[s] { s->queues.work_here(0); },
                        [s] { s->queues.go(pool_queues::phase::joining); },
                        [s] {
                            s->queues.post(s->posted[0]);
                            s->queues.count_work(-1);
                        }},
            .at_end = [s] { expect(s->posted.each_once(), "it ended before its work"); }};
}

TEST(model, a_pool_that_is_joined_waits_for_counted_work) {
    holds(pool_that_waits_for_counted_work);
}

// strand

scenario strand_on_two_threads(bool two_producers) {
    struct state {
        crowd threads;
        std::optional<strand<crowd::executor_type>> on{threads.get_executor()};
        items<3> posted;
        std::vector<item*> order;
        bool inside = false;
        [[nodiscard]] bool over() const { return order.size() == posted.size(); }
    };
    auto s = std::make_shared<state>();
    for (item& i : s->posted) {
        i.then = [s = s.get(), &i] {
            expect(!std::exchange(s->inside, true), "two items run at once");
            point();  // where others may begin
            s->inside = false;
            s->order.push_back(&i);
        };
    }
    auto const work = [s] { s->threads.work_until([s] { return s->over(); }); };
    auto const post = [s](std::size_t n) { s->on->post(&s->posted[n]); };
    scenario made{.threads = {work, work, [=] {
                                  post(0);
                                  post(1);
                                  if (!two_producers) {
                                      post(2);
                                  }
                              }}};
    if (two_producers) {
        made.threads.push_back([=] { post(2); });
    }
    made.at_end = [s] {
        s->threads.work_until([] { return true; });
        expect(s->posted.each_once(), "an item was lost, or run twice");
        auto const at = [&](std::size_t n) {
            return std::find(s->order.begin(), s->order.end(), &s->posted[n]);
        };
        expect(at(0) < at(1), "items of one producer changed places");
    };
    return made;
}

TEST(model, a_strand_runs_one_at_a_time_in_order_and_loses_nothing) {
    holds([] { return strand_on_two_threads(false); });
    holds([] { return strand_on_two_threads(true); }, 1);
}
TEST(model, a_strand_whose_changes_are_torn_is_found) {
    finds(torn_changes, [] { return strand_on_two_threads(false); });
}

// brief_lock, on which others stand

scenario lock_of_two() {
    struct state {
        brief_lock lock;
        int inside = 0;
    };
    auto s = std::make_shared<state>();
    auto const enter = [s] {
        for (int i = 0; i < 2; ++i) {
            s->lock.lock();
            expect(++s->inside == 1, "two are inside");
            point();
            --s->inside;
            s->lock.unlock();
        }
    };
    return {.threads = {enter, enter}};
}

TEST(model, a_lock_is_held_by_one_and_always_given_on) { holds(lock_of_two, 6); }
TEST(model, a_lock_that_wakes_nobody_is_found) { finds(lost_wakes, lock_of_two); }

}  // namespace
}  // namespace plumb::model
