// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/mapped_file_handle.hpp>

#include "platform/seam.hpp"
#include "support/allocations.hpp"
#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/failing_calls.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using namespace std::literals;
using mode = mapped_file_handle::mode;
using creation = mapped_file_handle::creation;
using caching = mapped_file_handle::caching;

constexpr std::size_t page = 4096;

class mapped_file_handle_test : public ::testing::Test {
protected:
    mapped_file_handle make(std::string_view content, mode access = mode::write) {
        make_file(temporary / "f", content);
        return mapped_file(base, "f", access).value();
    }
    // How much is wanted; where it would go doesn't matter.
    [[nodiscard]] io_request<buffers> wanted(extent_type offset, std::size_t bytes) {
        return {buffer(unused.data(), bytes), offset};
    }
    /// How many maps of files of this test the process has.
    [[nodiscard]] int maps() const {
        std::ifstream in("/proc/self/maps");
        int count = 0;
        for (std::string line; std::getline(in, line);) {
            count += line.find(temporary.path().string()) != std::string::npos ? 1 : 0;
        }
        return count;
    }

    temporary_directory temporary;
    path_handle const base = path_handle::directory(temporary.path()).value();
    std::vector<std::byte> unused = std::vector<std::byte>(1 << 20);
};

TEST_F(mapped_file_handle_test, a_default_one_is_closed) {
    mapped_file_handle f;
    EXPECT_FALSE(f.is_open());
    EXPECT_EQ(f.kind(), handle_kind::mapped_file);
    EXPECT_EQ(f.reservation(), 0u);
    EXPECT_TRUE(f.close());
    EXPECT_EQ(f.read(wanted(0, 1)).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.reserve(0).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.reserve(page).error(), std::errc::bad_file_descriptor);
    EXPECT_FALSE(f.clone());
}

TEST_F(mapped_file_handle_test, a_read_points_into_the_map_and_copies_nothing) {
    auto f = make("hello world", mode::read);
    auto const first = f.read(wanted(0, 5));
    EXPECT_EQ(text_of(first), "hello");
    EXPECT_NE((*first)[0].data(), unused.data());
    auto const again = f.read(wanted(6, 100));
    EXPECT_EQ(text_of(again), "world") << "short at the end";
    EXPECT_EQ((*again)[0].data(), (*first)[0].data() + 6);
    io_handle& h = f;
    EXPECT_EQ((*h.read(wanted(0, 1)))[0].data(), (*first)[0].data()) << "as any io_handle";
}

TEST_F(mapped_file_handle_test, a_list_asks_for_as_much_as_all_its_buffers_hold) {
    auto f = make("hello world");
    std::array<buffer, 2> const list{buffer(unused.data(), 3), buffer(unused.data(), 4)};
    auto const r = f.read({list, 1});
    EXPECT_EQ(text_of(r), "ello wo");
    EXPECT_EQ(r->size(), 1u);
}

TEST_F(mapped_file_handle_test, a_read_at_the_end_is_success_with_no_bytes) {
    auto f = make("hello");
    for (extent_type const offset : {5u, 6u, 1u << 20}) {
        auto const r = f.read(wanted(offset, 10));
        ASSERT_TRUE(r);
        EXPECT_EQ(r.bytes_transferred(), 0u);
    }
    auto empty = mapped_file(base, "g", mode::write, creation::create_new).value();
    EXPECT_EQ(empty.read(wanted(0, 1)).value().bytes(), 0u);
}

TEST_F(mapped_file_handle_test, what_it_cannot_do_is_a_clear_error) {
    auto f = make("hello");
    EXPECT_TRUE(f.read({buffer(), 0}));
    EXPECT_EQ(f.read(buffer(unused)).error(), std::errc::invalid_argument) << "without an offset";
    EXPECT_EQ(f.try_read(wanted(0, 1)).error(), std::errc::not_supported);
    EXPECT_EQ(f.read(wanted(0, 1), 1s).error(), std::errc::not_supported);
    EXPECT_EQ(mapped_file(base, "f", mode::append).error(), std::errc::permission_denied);
    EXPECT_EQ(mapped_file(base, "f", mode::attributes).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(mapped_file(base, "g", mode::write, creation::create_new, caching::none).error(),
              std::errc::not_supported);
    EXPECT_FALSE(std::filesystem::exists(temporary / "g"));
    EXPECT_EQ(mapped_file(base, "nothing").error(), std::errc::no_such_file_or_directory);
    EXPECT_FALSE(
        mapped_file(base, "f", mode::read, creation::open_existing, caching::all, 1ull << 62));
    EXPECT_FALSE(mapped_file(base, ".")) << "a directory";
}

TEST_F(mapped_file_handle_test, writes_and_reads_see_the_same_file) {
    auto f = make("hello");
    auto const all = f.read(wanted(0, 5)).value();
    EXPECT_EQ(f.write({bytes_of("J"), 0}).bytes_transferred(), 1u);
    EXPECT_EQ(text_of(all), "Jello") << "also what was read before";
    std::memcpy((*all.begin()).data(), "C", 1);
    EXPECT_EQ(content_of(temporary / "f"), "Cello");
    EXPECT_TRUE(f.barrier());
    auto reader = mapped_file(base, "f").value();
    EXPECT_EQ(reader.write({bytes_of("x"), 0}).error(), std::errc::bad_file_descriptor);
}

TEST_F(mapped_file_handle_test, grows_without_moving) {
    auto f = make("start");
    auto const first = f.read(wanted(0, 5)).value();
    std::string const more(300'000, 'm');
    EXPECT_EQ(f.write({bytes_of(more), 5}).bytes_transferred(), more.size());
    auto const all = f.read(wanted(0, unused.size()));
    EXPECT_EQ(text_of(all), "start" + more);
    EXPECT_EQ((*all)[0].data(), first[0].data());
    // By another handle, and by zeros.
    auto other = file(base, "f", mode::append).value();
    ASSERT_TRUE(other.write(bytes_of("end")));
    EXPECT_EQ(text_of(f.read(wanted(300'005, 10))), "end");
    ASSERT_TRUE(f.truncate(400'000));
    EXPECT_EQ(text_of(f.read(wanted(399'998, 10))), "\0\0"s);
    EXPECT_EQ(text_of(first), "start");
}

TEST_F(mapped_file_handle_test, grows_beyond_its_reservation_when_it_reserves_more) {
    auto small =
        mapped_file(base, "f", mode::write, creation::create_new, caching::all, page).value();
    EXPECT_EQ(small.reservation(), page);
    ASSERT_TRUE(small.truncate(3 * page));
    ASSERT_TRUE(small.write({bytes_of("far"), 2 * page}));
    EXPECT_EQ(small.read(wanted(0, 3 * page)).bytes_transferred(), page);
    EXPECT_EQ(small.read(wanted(2 * page, 3)).error(), error::limit_exceeded);
    ASSERT_TRUE(small.reserve(10 * page));
    EXPECT_EQ(text_of(small.read(wanted(2 * page, 3))), "far");
    EXPECT_FALSE(small.reserve(1ull << 62));
    EXPECT_EQ(small.reservation(), 10 * page);
    EXPECT_EQ(text_of(small.read(wanted(2 * page, 3))), "far") << "as before";
    ASSERT_TRUE(small.reserve(0));
    EXPECT_GE(small.reservation(), 1u << 30);
}

TEST_F(mapped_file_handle_test, a_read_beyond_a_file_that_has_shrunk_is_an_error) {
    auto f = make(std::string(3 * page, 'x'));
    EXPECT_EQ(f.read(wanted(0, 3 * page)).bytes_transferred(), 3 * page);
    std::filesystem::resize_file(temporary / "f", page);
    EXPECT_EQ(f.read(wanted(0, 3 * page)).bytes_transferred(), page) << "what is still there";
    EXPECT_EQ(f.read(wanted(page, 1)).error(), error::file_shrank);
    EXPECT_EQ(f.read(wanted(2 * page, 1)).error(), error::file_shrank);
    EXPECT_EQ(f.read(wanted(3 * page, 1)).bytes_transferred(), 0u) << "its end as it was";
    // What this handle cuts off is no surprise.
    seekable_handle& seekable = f;
    ASSERT_TRUE(seekable.truncate(page));
    EXPECT_EQ(f.read(wanted(page, 1)).bytes_transferred(), 0u);
}

TEST_F(mapped_file_handle_test, touching_bytes_that_are_no_more_is_an_error_where_it_is_guarded) {
    auto f = make(std::string(3 * page, 'x'));
    auto const bytes = f.read(wanted(0, 3 * page)).value()[0];
    std::string copy(3 * page, '?');
    auto const copy_all = [&]() noexcept { std::memcpy(copy.data(), bytes.data(), bytes.size()); };
    EXPECT_TRUE(f.guarded(copy_all));
    EXPECT_EQ(copy, std::string(3 * page, 'x'));
    std::filesystem::resize_file(temporary / "f", page);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(f.guarded(copy_all).error(), error::map_fault);
    }
    EXPECT_EQ(f.guarded(copy_all).error(), std::errc::io_error);
    int volatile sum = 0;
    EXPECT_TRUE(f.guarded([&]() noexcept { sum = sum + std::to_integer<int>(*bytes.data()); }))
        << "what is still there";
    EXPECT_EQ(sum, 'x');
    EXPECT_EQ(f.guarded([&]() noexcept { bytes.data()[2 * page] = std::byte{1}; }).error(),
              error::map_fault)
        << "writing, too";
}

TEST_F(mapped_file_handle_test,
       a_file_that_shrinks_while_it_is_copied_ends_the_copy_with_an_error) {
    constexpr std::size_t size = 256 * page;
    auto f = make(std::string(size, 'x'));
    auto const bytes = f.read(wanted(0, size)).value()[0];
    std::atomic<bool> over = false;
    std::thread cutter([&] {
        auto other = file(base, "f", mode::write).value();
        while (!over) {
            (void)other.truncate(page);
            (void)other.truncate(size);
        }
    });
    int faults = 0;
    for (int i = 0; i < 100'000 && faults < 20; ++i) {
        auto const done =
            f.guarded([&]() noexcept { std::memcpy(unused.data(), bytes.data(), bytes.size()); });
        faults += done ? 0 : 1;
    }
    over = true;
    cutter.join();
    EXPECT_EQ(faults, 20);
}

TEST_F(mapped_file_handle_test, guards_nest_and_each_answers_for_its_own_map) {
    auto outer = make(std::string(2 * page, 'o'));
    auto inner = mapped_file(base, "g", mode::write, creation::create_new).value();
    ASSERT_TRUE(inner.truncate(2 * page));
    auto const outer_bytes = outer.read(wanted(0, 2 * page)).value()[0];
    auto const inner_bytes = inner.read(wanted(0, 2 * page)).value()[0];
    ASSERT_TRUE(outer.truncate(0));
    ASSERT_TRUE(inner.truncate(0));
    bool inner_failed = false;
    bool went_on = false;
    EXPECT_TRUE(outer.guarded([&]() noexcept {
        inner_failed = !inner.guarded([&]() noexcept { inner_bytes.data()[0] = std::byte{1}; });
        went_on = true;
    }));
    EXPECT_TRUE(inner_failed);
    EXPECT_TRUE(went_on);
    went_on = false;
    auto const left = outer.guarded([&]() noexcept {
        (void)inner.guarded([&]() noexcept { outer_bytes.data()[0] = std::byte{1}; });
        went_on = true;
    });
    EXPECT_EQ(left.error(), error::map_fault) << "past the inner one";
    EXPECT_FALSE(went_on);
    EXPECT_EQ(inner.guarded([&]() noexcept { inner_bytes.data()[0] = std::byte{1}; }).error(),
              error::map_fault)
        << "guards are as before";
}

TEST_F(mapped_file_handle_test, each_thread_has_its_own_guards) {
    auto f = make(std::string(2 * page, 'x'));
    auto const bytes = f.read(wanted(0, 2 * page)).value()[0];
    ASSERT_TRUE(f.truncate(0));
    std::array<std::thread, 4> threads;
    std::atomic<int> faults = 0;
    for (std::size_t place = page; auto& thread : threads) {
        thread = std::thread([&, place] {
            for (int i = 0; i < 100; ++i) {
                faults += f.guarded([&]() noexcept { bytes.data()[place] = std::byte{1}; }) ? 0 : 1;
            }
        });
        ++place;
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(faults, 400);
}

using mapped_file_handle_death_test = mapped_file_handle_test;

// In processes of their own, which begin without our handler.
TEST_F(mapped_file_handle_death_test, a_fault_elsewhere_goes_to_the_earlier_handler) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto const run = [this](auto install, bool send) {
        install();
        auto f = make(std::string(page, 'x'));
        auto other = mapped_file(base, "g", mode::write, creation::create_new).value();
        (void)other.truncate(page);
        auto const there = other.read(wanted(0, page)).value()[0];
        (void)other.truncate(0);
        std::filesystem::remove_all(temporary.path());  // nobody else does in that process
        if (send) {
            (void)f.guarded([]() noexcept { ::raise(SIGBUS); });
            ::_exit(5);
        }
        (void)f.guarded([&]() noexcept { there.data()[0] = std::byte{1}; });
    };
    auto const with_information = [] {
        struct sigaction mine{};
        mine.sa_flags = SA_SIGINFO;
        mine.sa_sigaction = [](int, siginfo_t* info, void*) {
            ::_exit(info->si_code > 0 && info->si_addr != nullptr ? 3 : 4);
        };
        ::sigaction(SIGBUS, &mine, nullptr);
    };
    EXPECT_EXIT(run(with_information, false), ::testing::ExitedWithCode(3), "");
    EXPECT_EXIT(run(with_information, true), ::testing::ExitedWithCode(4), "");
    auto const simple = [] { std::signal(SIGBUS, [](int) { ::_exit(6); }); };
    EXPECT_EXIT(run(simple, false), ::testing::ExitedWithCode(6), "");
    auto const none = [] { std::signal(SIGBUS, SIG_DFL); };
    EXPECT_EXIT(run(none, false), ::testing::KilledBySignal(SIGBUS), "");
    EXPECT_EXIT(run(none, true), ::testing::KilledBySignal(SIGBUS), "");
    auto const ignored = [] { std::signal(SIGBUS, SIG_IGN); };
    EXPECT_EXIT(run(ignored, true), ::testing::ExitedWithCode(5), "");
    EXPECT_EXIT(run(ignored, false), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(mapped_file_handle_test, maps_a_file_that_is_open) {
    auto f = file_handle::temporary_inode(base).value();
    ASSERT_TRUE(f.write({bytes_of("nameless"), 0}));
    auto mapped = mapped_file_handle::map(f).value();
    ASSERT_TRUE(f.close());
    EXPECT_EQ(text_of(mapped.read(wanted(4, 10))), "less");
    EXPECT_EQ(mapped_file_handle::map(f).error(), std::errc::bad_file_descriptor);
    // What refuses a map where direct i/o is possible at all.
    if (auto const direct = file_handle::temporary_inode(base, caching::none)) {
        EXPECT_EQ(mapped_file_handle::map(*direct).error(), std::errc::not_supported);
    }
}

TEST_F(mapped_file_handle_test, clones_and_reopened_ones_have_maps_of_their_own) {
    auto f = make("hello", mode::read);
    auto copy = f.clone().value();
    auto writer = f.reopen(mode::write).value();
    EXPECT_EQ(copy.reservation(), f.reservation());
    EXPECT_EQ(maps(), 3);
    ASSERT_TRUE(f.close());
    ASSERT_TRUE(writer.write({bytes_of("J"), 0}));
    EXPECT_EQ(text_of(copy.read(wanted(0, 5))), "Jello");
    EXPECT_EQ(text_of(writer.read(wanted(0, 5))), "Jello");
}

TEST_F(mapped_file_handle_test, the_map_moves_with_the_handle_and_goes_with_it) {
    auto f = make("hello");
    auto const bytes = f.read(wanted(0, 5)).value();
    auto moved = std::move(f);
    EXPECT_FALSE(f.is_open());
    EXPECT_EQ(text_of(bytes), "hello");
    f = std::move(moved);
    EXPECT_EQ(text_of(bytes), "hello");
    EXPECT_EQ(f.read(wanted(0, 5)).value()[0].data(), bytes[0].data());
    EXPECT_EQ(maps(), 1);
    f = mapped_file(base, "f").value();
    EXPECT_EQ(maps(), 1) << "assigned over";
    ASSERT_TRUE(f.close());
    EXPECT_EQ(maps(), 0);
    {
        auto const other = mapped_file(base, "f").value();
        EXPECT_EQ(maps(), 1);
    }
    EXPECT_EQ(maps(), 0);
}

TEST_F(mapped_file_handle_test, extents_and_locks_are_as_for_other_files) {
    auto f = make("0123456789");
    auto other = file(base, "f", mode::write).value();
    ASSERT_TRUE(f.zero(2, 3));
    EXPECT_EQ(text_of(f.read(wanted(0, 10))), "01\0\0\0"
                                              "56789"s);
    EXPECT_EQ(f.clone_extents(5, 5, f, 0).value(), 5u);
    EXPECT_EQ(text_of(f.read(wanted(0, 10))), "5678956789");
    auto const lock = f.lock_range(0, 1).value();
    EXPECT_EQ(other.try_lock_range(0, 1).error(), std::errc::timed_out);
}

TEST_F(mapped_file_handle_test, whichever_call_fails_is_told_and_nothing_leaks) {
    make_file(temporary / "f", "hello");
    auto const open_before = open_descriptors();
    auto const use = [&]() -> result<void> {
        auto f = mapped_file(base, "f", mode::write);
        if (!f) {
            return f.error();
        }
        if (auto const r = f->reserve(page); !r) {
            return r;
        }
        if (auto const r = f->read(wanted(0, 5)); !r) {
            return r.error();
        }
        auto const copy = f->clone();
        return copy ? f->close() : copy.error();
    };
    for (int n = 1;; ++n) {
        result<void> done;
        bool failed = false;
        {
            failing_calls const faults(n);
            done = use();
            failed = faults.failed();
        }
        if (!failed) {
            EXPECT_TRUE(done);
            EXPECT_GT(n, 8);
            break;
        }
        ASSERT_LT(n, 100);
        EXPECT_TRUE(done || done.error() == std::errc::io_error) << n;
        EXPECT_EQ(open_descriptors(), open_before) << n;
        EXPECT_EQ(maps(), 0) << n;
    }
}

TEST_F(mapped_file_handle_test, reading_allocates_nothing) {
    auto f = make("hello");
    auto const before = heap_allocations();
    EXPECT_TRUE(f.read(wanted(0, 5)));
    EXPECT_TRUE(f.guarded([]() noexcept {}));
    EXPECT_EQ(heap_allocations(), before);
}

}  // namespace
}  // namespace plumb::test
