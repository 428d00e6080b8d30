// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/frame_allocation.hpp>

#include <plumb/exec/pooled_memory.hpp>
#include <plumb/exec/stop_token.hpp>
#include <plumb/task/async_generator.hpp>
#include <plumb/task/channel.hpp>
#include <plumb/task/condition.hpp>
#include <plumb/task/mutex.hpp>
#include <plumb/task/run_on.hpp>
#include <plumb/task/select.hpp>
#include <plumb/task/task_scope.hpp>
#include <plumb/task/when_all.hpp>
#include <plumb/task/when_any.hpp>

#include "support/allocations.hpp"
#include "support/failing_memory.hpp"
#include "support/manual_loop.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

/// Gives frames from the heap, up to a limit, and counts.
class limited_resource : public frame_resource {
public:
    struct counts {
        int allocations = 0;
        int frames = 0;
        int references = 1;  // the owner's
        std::size_t bytes = 0;
        int left = -1;  // how many more it gives; negative: no limit
    };

    explicit limited_resource(counts& c) noexcept : frame_resource(functions_of), counts_(&c) {}

    /// The owner's count.
    void release() noexcept { drop(*this); }

private:
    static counts& of(frame_resource& self) noexcept {
        return *static_cast<limited_resource&>(self).counts_;
    }

    static void* take(frame_resource& self, std::size_t bytes) noexcept {
        counts& c = of(self);
        if (c.left == 0) {
            return nullptr;
        }
        c.left -= c.left > 0 ? 1 : 0;
        ++c.allocations;
        ++c.frames;
        c.bytes += bytes;
        return std::malloc(bytes);
    }
    static void give_back(frame_resource& self, void* block, std::size_t bytes) noexcept {
        --of(self).frames;
        of(self).bytes -= bytes;
        std::free(block);
    }
    static void retain(frame_resource& self) noexcept { ++of(self).references; }
    static void drop(frame_resource& self) noexcept {
        if (--of(self).references == 0) {
            delete static_cast<limited_resource*>(&self);
        }
    }

    static constexpr functions functions_of{&take, &give_back, &retain, &drop};

    counts* counts_;
};

/// An i/o object with frames of its own.
class owner {
public:
    explicit owner(limited_resource::counts& c) : resource_(new limited_resource(c)) {}
    owner(owner const&) = delete;
    owner& operator=(owner const&) = delete;
    ~owner() { resource_->release(); }

    [[nodiscard]] frame_resource& get_frame_resource() const noexcept { return *resource_; }

    task<int> member(int value) { co_return value; }
    task<int> const_member(int value) const { co_return value; }

private:
    limited_resource* resource_;
};

static_assert(has_frame_resource<owner> && has_frame_resource<owner const>);
static_assert(!has_frame_resource<int>);

class frame_allocation_test : public ::testing::Test {
protected:
    limited_resource::counts counts;
    manual_loop loop;
};

task<int> of_first(owner&, int value) { co_return value; }
task<int> of_const_first(owner const&, int value) { co_return value; }
task<int> of_second(int value, owner&) { co_return value; }
task<int> of_second_by_value(int value, std::unique_ptr<int>, owner&) { co_return value; }

task<int> level_of(int value) { co_return value; }

TEST_F(frame_allocation_test, a_frame_comes_from_its_first_parameter) {
    owner o(counts);
    EXPECT_EQ(loop.run(of_first(o, 1)), 1);
    EXPECT_EQ(counts.allocations, 1);
    EXPECT_EQ(loop.run(of_const_first(o, 2)), 2);
    EXPECT_EQ(counts.allocations, 2);
    EXPECT_EQ(counts.frames, 0);
    EXPECT_EQ(counts.bytes, 0u);
    EXPECT_EQ(counts.references, 1);
}

task<int> awaits_a_call(owner& o) { co_return co_await of_first(o, 1); }
task<int> awaits_a_name(owner& o) {
    task<int> first = of_first(o, 1);
    co_return co_await std::move(first);
}
task<> waits_at(owner&, gate& g) { co_await g; }
task<> awaits_who_waits_at(owner& o, gate& g) { co_await waits_at(o, g); }

#if __has_cpp_attribute(clang::coro_await_elidable) && defined(__OPTIMIZE__)
constexpr int frames_of_a_call = 0;
#else
constexpr int frames_of_a_call = 1;
#endif

TEST_F(frame_allocation_test,
       a_task_that_is_awaited_where_it_is_called_is_elided_where_the_compiler_can) {
    owner o(counts);
    EXPECT_EQ(loop.run(awaits_a_call(o)), 1);
    EXPECT_EQ(counts.allocations, 1 + frames_of_a_call);
    EXPECT_EQ(counts.frames, 0);
}

TEST_F(frame_allocation_test, a_task_that_has_a_name_is_never_elided) {
    owner o(counts);
    EXPECT_EQ(loop.run(awaits_a_name(o)), 1);
    EXPECT_EQ(counts.allocations, 2);
    EXPECT_EQ(counts.frames, 0);
}

TEST_F(frame_allocation_test, a_task_that_is_destroyed_while_it_awaits_frees_each_frame_once) {
    owner o(counts);
    gate never;
    async_run(loop.get_executor(), awaits_who_waits_at(o, never));
    loop.run();
    EXPECT_EQ(counts.frames, 1 + frames_of_a_call);
    loop.roots().destroy_all();
    EXPECT_EQ(counts.frames, 0);
    EXPECT_EQ(counts.references, 1);
}

TEST_F(frame_allocation_test, a_frame_comes_from_its_second_parameter) {
    owner o(counts);
    EXPECT_EQ(loop.run(of_second(3, o)), 3);
    EXPECT_EQ(counts.allocations, 1);
    EXPECT_EQ(counts.frames, 0);
}

TEST_F(frame_allocation_test, a_frame_of_a_member_function_comes_from_the_object) {
    owner o(counts);
    EXPECT_EQ(loop.run(o.member(4)), 4);
    EXPECT_EQ(loop.run(std::as_const(o).const_member(5)), 5);
    EXPECT_EQ(counts.allocations, 2);
}

TEST_F(frame_allocation_test, a_frame_of_a_lambda_comes_from_its_first_parameter) {
    owner o(counts);
    EXPECT_EQ(loop.run([](owner&) -> task<int> { co_return 6; }(o)), 6);
    EXPECT_EQ(counts.allocations, 1);
}

TEST_F(frame_allocation_test, later_parameters_do_not_count) {
    owner o(counts);
    EXPECT_EQ(loop.run(of_second_by_value(7, nullptr, o)), 7);
    EXPECT_EQ(counts.allocations, 0);
}

TEST_F(frame_allocation_test, the_first_parameter_comes_before_the_second) {
    limited_resource::counts others;
    owner first(counts);
    owner second(others);
    EXPECT_EQ(loop.run([](owner&, owner&) -> task<int> { co_return 1; }(first, second)), 1);
    EXPECT_EQ(counts.allocations + others.allocations, 1);
}

TEST_F(frame_allocation_test, a_resource_outlives_its_owner_until_its_last_frame_is_gone) {
    auto o = std::make_optional<owner>(counts);
    std::optional<task<int>> first = of_first(*o, 1);
    std::optional<task<int>> second = of_second(2, *o);
    EXPECT_EQ(counts.references, 3);
    o.reset();
    EXPECT_EQ(counts.references, 2);
    first.reset();
    EXPECT_EQ(counts.references, 1);
    EXPECT_EQ(loop.run(std::move(*second)), 2);
    second.reset();
    EXPECT_EQ(counts.references, 0);
    EXPECT_EQ(counts.frames, 0);
}

TEST_F(frame_allocation_test, a_frame_that_owns_the_owner_of_its_resource_ends_well) {
    auto const keep = [](std::unique_ptr<owner> o, owner&) -> task<int> {
        (void)o;
        co_return 8;
    };
    auto o = std::make_unique<owner>(counts);
    owner& same = *o;
    auto const keep_second = [](owner&, std::unique_ptr<owner>) -> task<int> { co_return 9; };
    EXPECT_EQ(loop.run(keep_second(same, std::move(o))), 9);
    EXPECT_EQ(counts.references, 0);
    EXPECT_EQ(counts.frames, 0);
    limited_resource::counts others;
    auto p = std::make_unique<owner>(others);
    owner& other = *p;
    EXPECT_EQ(loop.run(keep(std::move(p), other)), 8);
    EXPECT_EQ(others.references, 0);
    EXPECT_EQ(others.frames, 0);
}

task<int> tree(owner& o, int depth) {
    if (depth == 0) {
        co_return 1;
    }
    co_return co_await tree(o, depth - 1) + co_await tree(o, depth - 1);
}

TEST_F(frame_allocation_test, the_failure_of_any_frame_is_a_bad_alloc_and_leaks_nothing) {
    constexpr int frames = 15;  // of a tree of depth 3
    owner o(counts);
    EXPECT_EQ(loop.run(tree(o, 3)), 8);
    EXPECT_EQ(counts.allocations, frames);
    for (int n = 0; n < frames; ++n) {
        counts.left = n;
        EXPECT_THROW((void)loop.run(tree(o, 3)), std::bad_alloc) << n;
        EXPECT_EQ(counts.frames, 0) << n;
        EXPECT_EQ(counts.bytes, 0u) << n;
        EXPECT_EQ(counts.references, 1) << n;
    }
    counts.left = -1;
    EXPECT_EQ(loop.run(tree(o, 3)), 8);
}

TEST_F(frame_allocation_test, a_failure_is_thrown_at_the_call_and_can_be_handled_there) {
    owner o(counts);
    auto const handle = [&]() -> task<int> {
        try {
            task<int> one = of_first(o, 1);  // with a name, so that it has a frame
            co_return co_await std::move(one);
        } catch (std::bad_alloc const&) {
            co_return -1;
        }
    };
    counts.left = 0;
    EXPECT_EQ(loop.run(handle()), -1);
}

TEST_F(frame_allocation_test, frames_from_the_pool_are_recycled) {
    if (!pooled_memory_recycles()) {
        GTEST_SKIP() << "this build recycles nothing, so that a use after free is seen";
    }
    struct level {
        static task<int> down(int n) {
            if (n == 0) {
                co_return 0;
            }
            co_return 1 + co_await down(n - 1);
        }
    };
    auto const rounds = [](int count) -> task<int> {
        int sum = 0;
        for (int i = 0; i < count; ++i) {
            sum += co_await level::down(10);
        }
        co_return sum;
    };
    auto const run = [&]() -> task<std::uint64_t> {
        (void)co_await rounds(10);
        auto const before = heap_allocations();
        (void)co_await rounds(1000);
        co_return heap_allocations() - before;
    };
    EXPECT_EQ(loop.run(run()), 0u);
}

TEST_F(frame_allocation_test, frames_may_be_freed_on_another_thread) {
    std::optional<owner> o(std::in_place, counts);
    std::vector<task<int>> made;
    for (int i = 0; i < 20; ++i) {
        made.push_back(i % 2 == 0 ? of_first(*o, i) : level_of(i));
    }
    std::thread([&] {
        manual_loop there;
        for (int i = 0; i < 20; ++i) {
            EXPECT_EQ(there.run(std::move(made[static_cast<std::size_t>(i)])), i);
        }
        made.clear();
        o.reset();
    }).join();
    EXPECT_EQ(counts.frames, 0);
    EXPECT_EQ(counts.references, 0);
}

struct alignas(pooled_memory_alignment) line {
    [[nodiscard]] bool aligned() const {
        return reinterpret_cast<std::uintptr_t>(this) % pooled_memory_alignment == 0;
    }
    std::array<char, pooled_memory_alignment> bytes{};
};

TEST_F(frame_allocation_test, what_is_aligned_to_a_line_of_the_cache_is_so_in_frames) {
    auto const local = [](int n) -> task<bool> {
        line here;
        here.bytes[0] = static_cast<char>(n);
        (void)co_await this_env();
        co_return here.aligned() && here.bytes[0] == n;
    };
    auto const parameter = [](line given) -> task<bool> {
        (void)co_await this_env();
        co_return given.aligned() && given.bytes[1] == 1;
    };
    auto const result = []() -> task<line> {
        line made;
        made.bytes[2] = 2;
        co_return made;
    };
    line given;
    given.bytes[1] = 1;
    std::vector<task<bool>> kept;  // so that more than one block is looked at
    for (int i = 0; i < 5; ++i) {
        kept.push_back(local(i));
        kept.push_back(parameter(given));
    }
    for (auto& t : kept) {
        EXPECT_TRUE(loop.run(std::move(t)));
    }
    EXPECT_EQ(loop.run(result()).bytes[2], 2);
}

/// All that allocates frames: nested tasks, combinators, a scope, generators, and who waits for one another.
class everything {
public:
    explicit everything(int& alive) : alive_(alive) {}

    task<int> run() {
        counted const here(alive_);
        int sum = co_await nested(3);
        sum += co_await task_scope::run([this](task_scope& scope) { return both(scope); });
        auto values = count(3);
        while (auto const value = co_await values.next()) {
            sum += *value;
        }
        auto [first, tasks] = co_await when_any(nested(1), never());
        co_return sum + std::get<0>(tasks).take();
    }
    static constexpr int expected = 8 + (1 + 2 + 3) + 4 + (1 + 2 + 3) + 2;

private:
    task<int> nested(int depth) {
        counted const here(alive_);
        if (depth == 0) {
            co_return 1;
        }
        int const first = co_await nested(depth - 1);
        co_return first + co_await nested(depth - 1);
    }
    task<int> both(task_scope& scope) {
        counted const here(alive_);
        scope.spawn(produce());
        auto [received, sum] = co_await when_all(consume(), nested(2));
        co_return received + sum;
    }
    task<> produce() {
        counted const here(alive_);
        for (int i = 1; i <= 3; ++i) {
            (co_await values_.send(int(i))).value();
        }
        auto held = (co_await guard_.lock()).value();
        done_ = true;
        changed_.notify_all();
    }
    task<int> consume() {
        counted const here(alive_);
        int sum = 0;
        for (int i = 0; i < 3; ++i) {
            auto got = co_await select(values_.receive(), others_.receive());
            sum += std::get<0>(got.value()).value();
        }
        auto held = (co_await guard_.lock()).value();
        while (!done_) {
            (co_await changed_.wait(held)).value();
        }
        co_return sum;
    }
    async_generator<int> count(int last) {
        counted const here(alive_);
        for (int i = 1; i <= last; ++i) {
            co_yield i;
        }
    }
    task<int> never() {
        counted const here(alive_);
        auto const got = co_await others_.receive();
        co_return got.value();
    }

    int& alive_;
    channel<int> values_{0};
    channel<int> others_{1};
    mutex guard_;
    condition changed_;
    bool done_ = false;
};

TEST_F(frame_allocation_test, a_program_without_memory_for_its_nth_frame_fails_and_leaks_nothing) {
    // The thread's last failure lives on, and the block of its stack: from here on there is always one.
    auto const fail = []() -> task<> {
        (void)co_await this_env();
        throw std::bad_alloc();
    };
    EXPECT_THROW(loop.run(fail()), std::bad_alloc);
    int alive = 0;
    int failures = 0;
    for (int n = 1;; ++n) {
        ASSERT_LT(n, 1000);
        emptied_pool const held;
        std::optional<int> sum;
        bool failed = false;
        int taken = 0;
        {
            everything all(alive);
            failing_memory const memory(n);
            try {
                sum = loop.run(all.run());
            } catch (std::bad_alloc const&) {
                ++failures;
            }
            failed = memory.failed();
            taken = memory.taken();
        }
        EXPECT_EQ(alive, 0) << n;
        EXPECT_TRUE(loop.roots().empty()) << n;
        EXPECT_EQ(loop.count(), 0u) << n;
        if (pooled_memory_recycles()) {  // else the address sanitizer looks for leaks
            EXPECT_EQ(emptied_pool().kept(), static_cast<std::size_t>(taken)) << n;
        }
        if (!failed) {
            EXPECT_EQ(sum, everything::expected);
            break;
        }
        EXPECT_EQ(sum, std::nullopt) << n;
    }
    EXPECT_GT(failures, 10);
}

}  // namespace
}  // namespace plumb::test
