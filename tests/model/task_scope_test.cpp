// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/task_scope.hpp>

#include <plumb/task/async_run.hpp>

#include "model/case.hpp"
#include "model/crowd.hpp"

#include <memory>
#include <stdexcept>

namespace plumb::model {
namespace {

struct at_end_of_child {
    int& alive;
    explicit at_end_of_child(int& a) noexcept : alive(a) { ++alive; }
    at_end_of_child(at_end_of_child const&) = delete;
    at_end_of_child& operator=(at_end_of_child const&) = delete;
    ~at_end_of_child() { --alive; }
};

struct state {
    crowd threads;
    int alive = 0;
    int ended = 0;
    int scopes_ended = 0;
    bool failed = false;

    task<> child(bool fails) {
        at_end_of_child const here(alive);
        point();  // where others may begin
        ++ended;
        if (fails) {
            throw std::runtime_error("expected");
        }
        co_return;
    }
    task<> body(task_scope& scope, bool fails) {
        scope.spawn(child(fails));
        scope.spawn(child(false));
        co_return;
    }
    task<> with_scope(bool fails) {
        try {
            co_await task_scope::run([this, fails](task_scope& s) { return body(s, fails); });
        } catch (std::runtime_error const&) {
            failed = true;
        }
        expect(alive == 0 && ended == 2, "the scope ended before its children");
        ++scopes_ended;
    }
};

/// A scope with two children on two threads. The first child may fail, which stops the rest.
scenario scope(bool fails) {
    auto s = std::make_shared<state>();
    auto const work = [s] { s->threads.work_until([s] { return s->scopes_ended != 0; }); };
    async_run(s->threads.get_executor(), s->with_scope(fails));
    return {.threads = {work, work}, .at_end = [s, fails] {
                s->threads.work_until([] { return true; });
                expect(s->scopes_ended == 1, "the scope ended more than once");
                expect(s->failed == fails, "the exception of the child");
            }};
}

TEST(model, a_scope_ends_once_after_its_children) {
    holds([] { return scope(false); }, 3);
}
TEST(model, a_scope_whose_child_fails_ends_once_after_its_children) {
    holds([] { return scope(true); });
}
TEST(model, a_scope_whose_changes_are_torn_is_found) {
    finds(torn_changes, [] { return scope(false); });
}

}  // namespace
}  // namespace plumb::model
