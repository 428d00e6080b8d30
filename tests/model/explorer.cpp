// SPDX-License-Identifier: Apache-2.0
#include "model/explorer.hpp"

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace plumb::model {
namespace {

constexpr int most_in_a_row = 100;
constexpr long most_steps = 20'000;

/// A binary semaphore. Those of the standard library yield a few times before they sleep, which beside other load costs a
/// time slice for each step of a model.
class signal {
public:
    void release() {
        {
            std::scoped_lock const locked(mutex_);
            given_ = true;
        }
        changed_.notify_one();
    }
    void acquire() {
        std::unique_lock locked(mutex_);
        changed_.wait(locked, [this] { return given_; });
        given_ = false;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool given_ = false;
};

struct thread_of_model {
    signal turn;
    std::function<void()> const* body = nullptr;
    bool done = true;
    void const* sleeps_on = nullptr;
    std::function<bool()> const* awaits = nullptr;

    [[nodiscard]] bool ready() const {
        return !done && sleeps_on == nullptr && (awaits == nullptr || (*awaits)());
    }
};

/// One of several possibilities.
struct choice {
    std::size_t taken;
    std::size_t count;
};

class explorer {
public:
    explicit explorer(options const& o) : options_(o) {}

    outcome run(std::function<scenario()> const& make);

    void point();
    void sleep(void const* on);
    void wake(void const* on, bool all);
    void await(std::function<bool()> const& condition);
    /// Doesn't return, but at the end of a run.
    void fail(std::string what);
    [[nodiscard]] bool torn() const { return options_.torn_changes; }

    static inline thread_local explorer* here = nullptr;
    static inline thread_local std::size_t self = 0;

private:
    void live(std::size_t number, thread_of_model& me);
    std::size_t choose(std::size_t count);
    /// Somebody else goes on, as this thread can't.
    void hand_over();
    void pass_to(std::size_t next);
    [[nodiscard]] std::vector<std::size_t> others_ready() const;
    bool next_choices();

    options const options_;
    std::vector<std::unique_ptr<thread_of_model>> threads_;
    signal over_;
    std::vector<choice> choices_;
    std::size_t made_ = 0;
    int preemptions_ = 0;
    int in_a_row_ = 0;
    long steps_ = 0;
    std::string violation_;
    bool at_end_ = false;
    bool finished_ = false;
};

outcome explorer::run(std::function<scenario()> const& make) {
    outcome o;
    do {
        scenario s = make();
        while (threads_.size() < s.threads.size()) {
            threads_.push_back(std::make_unique<thread_of_model>());
            // Detached: after a violation they are in the middle of things for ever.
            std::thread([this, number = threads_.size() - 1, &me = *threads_.back()] {
                live(number, me);
            }).detach();
        }
        for (std::size_t t = 0; t < s.threads.size(); ++t) {
            threads_[t]->body = &s.threads[t];
            threads_[t]->done = false;
        }
        made_ = 0;
        preemptions_ = in_a_row_ = 0;
        steps_ = 0;
        threads_[choose(s.threads.size())]->turn.release();
        over_.acquire();
        ++o.runs;
        if (violation_.empty()) {
            here = this;
            at_end_ = true;
            s.at_end();
            at_end_ = false;
            here = nullptr;
        }
        if (!violation_.empty()) {
            o.violation = violation_ + ", in run " + std::to_string(o.runs) + " by the choices";
            for (std::size_t i = 0; i < made_; ++i) {
                o.violation += ' ' + std::to_string(choices_[i].taken);
            }
            new scenario(std::move(s));  // its threads are still in it
            return o;
        }
        o.complete = !next_choices();
    } while (!o.complete && o.runs < options_.most_runs);
    finished_ = true;
    for (auto& t : threads_) {
        t->turn.release();
        over_.acquire();
    }
    return o;
}

/// From the last choice that has another possibility on, as yet none is made.
bool explorer::next_choices() {
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) {
        choices_.pop_back();
    }
    if (choices_.empty()) {
        return false;
    }
    ++choices_.back().taken;
    return true;
}

std::size_t explorer::choose(std::size_t count) {
    if (count < 2) {
        return 0;
    }
    if (made_ == choices_.size()) {
        choices_.push_back({0, count});
    }
    return choices_[made_++].taken;
}

void explorer::live(std::size_t number, thread_of_model& me) {
    self = number;
    for (;;) {
        me.turn.acquire();
        if (finished_) {
            over_.release();
            return;
        }
        here = this;
        (*me.body)();
        here = nullptr;
        me.done = true;
        auto const ready = others_ready();
        if (!ready.empty()) {
            in_a_row_ = 0;
            threads_[ready[choose(ready.size())]]->turn.release();
            continue;
        }
        for (auto const& t : threads_) {
            if (!t->done) {
                violation_ = "all that have not ended wait";
            }
        }
        over_.release();
    }
}

std::vector<std::size_t> explorer::others_ready() const {
    std::vector<std::size_t> ready;
    for (std::size_t t = 0; t < threads_.size(); ++t) {
        if (t != self && threads_[t]->ready()) {
            ready.push_back(t);
        }
    }
    return ready;
}

void explorer::pass_to(std::size_t next) {
    in_a_row_ = 0;
    threads_[next]->turn.release();
    threads_[self]->turn.acquire();
}

void explorer::point() {
    if (++steps_ > most_steps) {
        fail("a run doesn't end");
    }
    bool const gives_way = ++in_a_row_ > most_in_a_row;
    if (!gives_way && preemptions_ == options_.preemptions) {
        return;
    }
    auto const ready = others_ready();
    if (ready.empty()) {
        return;
    }
    if (gives_way) {
        pass_to(ready[choose(ready.size())]);
        return;
    }
    std::size_t const chosen = choose(ready.size() + 1);
    if (chosen != 0) {
        ++preemptions_;
        pass_to(ready[chosen - 1]);
    }
}

void explorer::hand_over() {
    auto const ready = others_ready();
    if (!ready.empty()) {
        pass_to(ready[choose(ready.size())]);
    } else if (!threads_[self]->ready()) {
        fail("all that have not ended wait");
    }
}

void explorer::sleep(void const* on) {
    threads_[self]->sleeps_on = on;
    hand_over();
}

void explorer::wake(void const* on, bool all) {
    if (options_.lost_wakes) {
        return;
    }
    std::vector<thread_of_model*> sleeping;
    for (auto const& t : threads_) {
        if (!t->done && t->sleeps_on == on) {
            sleeping.push_back(t.get());
        }
    }
    if (!all && !sleeping.empty()) {
        sleeping = {sleeping[choose(sleeping.size())]};
    }
    for (auto* const t : sleeping) {
        t->sleeps_on = nullptr;
    }
}

void explorer::await(std::function<bool()> const& condition) {
    while (!condition()) {
        threads_[self]->awaits = &condition;
        hand_over();
        threads_[self]->awaits = nullptr;
    }
}

void explorer::fail(std::string what) {
    violation_ = std::move(what);
    if (at_end_) {
        return;
    }
    over_.release();
    signal never;
    for (;;) {
        never.acquire();
    }
}

}  // namespace

outcome explore(options const& o, std::function<scenario()> const& make) {
    auto* const e = new explorer(o);
    outcome found = e->run(make);
    if (found.violation.empty()) {
        delete e;
    }
    return found;
}

void expect(bool holds, char const* what) {
    if (!holds) {
        explorer::here->fail(what);
    }
}

void await(std::function<bool()> condition) { explorer::here->await(condition); }

void point() noexcept {
    if (explorer::here != nullptr) {
        explorer::here->point();
    }
}
void sleep(void const* on) noexcept { explorer::here->sleep(on); }
void wake(void const* on, bool all) noexcept {
    if (explorer::here != nullptr) {
        explorer::here->wake(on, all);
    }
}
bool torn() noexcept { return explorer::here != nullptr && explorer::here->torn(); }

}  // namespace plumb::model
