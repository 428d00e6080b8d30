// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/file_handle.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/failing_calls.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using namespace std::literals;
using platform::failed_with;
using platform::outcome;
using mode = file_handle::mode;
using creation = file_handle::creation;

// System calls on files that fail, do half of it, or aren't there.
class file_fault_test : public ::testing::Test {
protected:
    file_fault_test() : seam_(platform::native_seam()) { platform::replace_seam(&seam_); }
    ~file_fault_test() override { platform::replace_seam(nullptr); }

    [[nodiscard]] platform::seam& faulty() noexcept { return seam_; }
    static std::string text_at(file_handle& f, extent_type offset, std::size_t size) {
        std::string text(size, '?');
        return text_of(f.read({buffer(text), offset}));
    }

    temporary_directory temporary;
    path_handle const base = path_handle::directory(temporary.path()).value();
    std::array<std::byte, 64> memory{};

private:
    platform::seam seam_;
};

/// Uses files in every way there is, up to the first error.
result<void> use_files(path_handle const& base) {
    std::string const text(100, 'x');
    std::array<std::byte, 200> memory;
    auto f = file(base, "f", mode::write, creation::always_new);
    if (!f) {
        return f.error();
    }
    if (auto const r = f->write({bytes_of(text), 0}); !r) {
        return r.error();
    }
    if (auto const r = f->barrier(); !r) {
        return r.error();
    }
    auto const lock = f->lock_range(0, 10);
    if (!lock) {
        return lock.error();
    }
    if (auto const r = f->clone_extents(0, 50, *f, 25); !r) {
        return r.error();
    }
    if (auto const r = f->zero(0, 10); !r) {
        return r.error();
    }
    if (auto const r = f->truncate(90); !r) {
        return r.error();
    }
    auto copy = f->clone();
    if (!copy) {
        return copy.error();
    }
    auto reader = copy->reopen(mode::read);
    if (!reader) {
        return reader.error();
    }
    if (auto const r = reader->read({buffer(memory), 0}); !r) {
        return r.error();
    } else if (r.bytes_transferred() != 90) {
        return error::end_of_stream;
    }
    auto const place =
        path_handle::path(base, "f").and_then([](auto const& p) { return p.clone(); });
    if (!place) {
        return place.error();
    }
    auto nameless = file_handle::temporary_inode(base);
    if (!nameless) {
        return nameless.error();
    }
    return f->close();
}

TEST_F(file_fault_test, whichever_call_fails_is_told_and_nothing_leaks) {
    auto const open_before = open_descriptors();
    int quiet = 0;
    int n = 0;
    for (;;) {
        failing_calls const faults(++n);
        auto const done = use_files(base);
        if (!faults.failed()) {
            EXPECT_TRUE(done) << done.error().message();
            break;
        }
        ASSERT_LT(n, 1000);
        if (!done) {
            EXPECT_EQ(done.error(), std::errc::io_error) << n;
        }
        quiet += done ? 1 : 0;
        EXPECT_EQ(open_descriptors(), open_before) << n;
        EXPECT_LE(temporary.entries(), 1u) << n;
    }
    EXPECT_GT(n, 20);
    // What a destructor does, and what is only asked to check more.
    EXPECT_LE(quiet, n / 2);
}

TEST_F(file_fault_test, a_read_or_write_that_fails_tells_the_error) {
    make_file(temporary / "f", "hello");
    auto f = file(base, "f", mode::write).value();
    faulty().read_at = [](native_handle, buffer const*, std::size_t,
                          extent_type) noexcept -> outcome {
        return failed_with(std::errc::io_error);
    };
    faulty().write_at = [](native_handle, const_buffer const*, std::size_t,
                           extent_type) noexcept -> outcome {
        return failed_with(std::errc::no_space_on_device);
    };
    faulty().sync_file = [](native_handle, barrier_kind, extent_type,
                            extent_type) noexcept -> outcome {
        return failed_with(std::errc::io_error);
    };
    EXPECT_EQ(f.read({buffer(memory), 0}).error(), std::errc::io_error);
    EXPECT_EQ(f.write({bytes_of("x"), 0}).error(), std::errc::no_space_on_device);
    EXPECT_EQ(f.barrier().error(), std::errc::io_error);
}

TEST_F(file_fault_test, a_short_read_and_a_torn_write_tell_how_much) {
    make_file(temporary / "f", "hello world");
    auto f = file(base, "f", mode::write).value();
    faulty().read_at = [](native_handle h, buffer const* b, std::size_t,
                          extent_type at) noexcept -> outcome {
        buffer const some = b->first(3);
        return platform::native_seam().read_at(h, &some, 1, at);
    };
    faulty().write_at = [](native_handle h, const_buffer const* b, std::size_t,
                           extent_type at) noexcept -> outcome {
        const_buffer const some = b->first(2);
        return platform::native_seam().write_at(h, &some, 1, at);
    };
    EXPECT_EQ(text_of(f.read({buffer(memory), 6})), "wor");
    auto const written = f.write({bytes_of("WORLD"), 6});
    EXPECT_EQ(written.bytes_transferred(), 2u);
    EXPECT_EQ(content_of(temporary / "f"), "hello WOrld");
}

TEST_F(file_fault_test, a_long_list_that_fails_half_way_tells_what_was_moved) {
    auto f = file(base, "f", mode::write, creation::create_new).value();
    static int calls;
    calls = 0;
    faulty().write_at = [](native_handle h, const_buffer const* b, std::size_t n,
                           extent_type at) noexcept -> outcome {
        return ++calls == 1 ? platform::native_seam().write_at(h, b, n, at)
                            : failed_with(std::errc::no_space_on_device);
    };
    std::string const x = "x";
    std::vector<const_buffer> const list(3000, bytes_of(x));
    EXPECT_EQ(f.write({list, 0}).bytes_transferred(), platform::most_buffers);
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(f.write({list, platform::most_buffers}).error(), std::errc::no_space_on_device);
}

TEST_F(file_fault_test, a_full_device_is_an_error_of_the_write) {
    auto full = file({}, "/dev/full", mode::write).value();
    EXPECT_EQ(full.write({bytes_of("x"), 0}).error(), std::errc::no_space_on_device);
}

// In a process with a file system of its own, of 64 KiB.
TEST_F(file_fault_test, a_disk_that_fills_up_takes_what_fits_and_then_tells) {
    auto const mounted = [&] {
        return ::unshare(CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER)) == 0 &&
               ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("plumb", temporary.path().c_str(), "tmpfs", 0, "size=64k") == 0;
    };
    auto const child = ::fork();
    if (child == 0) {
        if (!mounted()) {
            ::_exit(77);
        }
        auto const disk = path_handle::directory(temporary.path()).value();
        auto f = file(disk, "f", mode::write, creation::create_new).value();
        std::string const text(100'000, 'x');
        auto const first = f.write({bytes_of(text), 0});
        auto const written = first.bytes_transferred();
        auto const next = f.write({bytes_of(text), written});
        bool passed = written == 65536 && !next && next.error() == std::errc::no_space_on_device &&
                      f.maximum_extent().value() == written && text_at(f, 0, 10) == "xxxxxxxxxx";
        // Zeros need no space, and give some back.
        passed = passed && f.zero(0, 32768) && f.write({bytes_of("y"), 5}).bytes_transferred() == 1;
        passed =
            passed && f.clone_extents(0, 65536, f, 65536).error() == std::errc::no_space_on_device;
        ::_exit(passed ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        GTEST_SKIP() << "this process may mount nothing";
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(file_fault_test, zeros_are_written_where_the_file_system_cannot_deallocate) {
    faulty().deallocate = [](native_handle, extent_type, extent_type) noexcept -> outcome {
        return failed_with(std::errc::operation_not_supported);
    };
    auto f = file(base, "f", mode::write, creation::create_new).value();
    std::string text(200'000, 'x');
    ASSERT_TRUE(f.write({bytes_of(text), 0}));
    ASSERT_TRUE(f.zero(3, 150'000));
    std::fill_n(text.begin() + 3, 150'000, '\0');
    EXPECT_TRUE(content_of(temporary / "f") == text);
    EXPECT_TRUE(f.zero(199'999, 1'000'000));
    EXPECT_TRUE(f.zero(300'000, 10));
    text.back() = '\0';
    EXPECT_TRUE(content_of(temporary / "f") == text) << "of the same size";
    auto appending = f.reopen(mode::append).value();
    EXPECT_EQ(appending.zero(0, 10).error(), std::errc::not_supported);
    EXPECT_EQ(f.maximum_extent().value(), text.size());
}

TEST_F(file_fault_test, extents_are_copied_where_the_file_system_cannot_clone) {
    for (auto const reason : {std::errc::cross_device_link, std::errc::operation_not_supported,
                              std::errc::function_not_supported}) {
        static std::errc refusal;
        refusal = reason;
        static int calls;
        calls = 0;
        // The first few bytes it can.
        faulty().copy_range = [](native_handle from, extent_type offset, native_handle to,
                                 extent_type to_offset, extent_type) noexcept -> outcome {
            return ++calls == 1
                       ? platform::native_seam().copy_range(from, offset, to, to_offset, 10)
                       : failed_with(refusal);
        };
        std::string text(100'000, ' ');
        std::ranges::generate(text, [n = 0]() mutable { return static_cast<char>(n++ % 251); });
        make_file(temporary / "f", text);
        auto from = file(base, "f").value();
        auto to = file(base, "g", mode::write, creation::always_new).value();
        EXPECT_EQ(from.clone_extents(5, 1'000'000, to, 0).value(), text.size() - 5);
        EXPECT_TRUE(content_of(temporary / "g") == text.substr(5));
        EXPECT_EQ(from.clone_extents(0, 1'000'000, to, 3).value(), text.size());
        EXPECT_TRUE(content_of(temporary / "g") == text.substr(5, 3) + text);
    }
}

TEST_F(file_fault_test, a_source_that_shrinks_while_it_is_copied_is_an_error) {
    faulty().copy_range = [](native_handle, extent_type, native_handle, extent_type,
                             extent_type) noexcept -> outcome { return 0; };
    faulty().file_size = [](native_handle) noexcept -> outcome { return 1000; };
    make_file(temporary / "f", "short");
    auto from = file(base, "f").value();
    auto to = file(base, "g", mode::write, creation::create_new).value();
    EXPECT_EQ(from.clone_extents(0, 1000, to, 0).error(), error::end_of_stream);
}

TEST_F(file_fault_test, a_file_system_without_nameless_files_gets_one_that_loses_its_name) {
    faulty().open_file = [](native_handle b, char const* path, std::uint32_t how) noexcept {
        return (how & platform::open_unnamed) != 0
                   ? failed_with(std::errc::operation_not_supported)
                   : platform::native_seam().open_file(b, path, how);
    };
    auto f = file_handle::temporary_inode(base).value();
    EXPECT_TRUE(f.write({bytes_of("x"), 0}));
    EXPECT_EQ(text_at(f, 0, 1), "x");
    EXPECT_EQ(temporary.entries(), 0u);
}

TEST_F(file_fault_test, a_new_file_finds_a_name_that_is_free) {
    // A clock that stands still.
    faulty().steady_now = []() noexcept -> std::int64_t { return 1; };
    make_file(temporary / ".plumb-1", "not mine");
    make_file(temporary / ".plumb-2", "not mine");
    EXPECT_TRUE(file(base, "f", mode::write, creation::always_new));
    EXPECT_EQ(content_of(temporary / ".plumb-1"), "not mine");
    EXPECT_EQ(content_of(temporary / ".plumb-2"), "not mine");
    EXPECT_EQ(temporary.entries(), 3u);
}

TEST_F(file_fault_test, direct_io_that_is_refused_after_the_file_was_made_leaves_none) {
    faulty().open_file = [](native_handle b, char const* path, std::uint32_t how) noexcept {
        if ((how & platform::open_direct) == 0) {
            return platform::native_seam().open_file(b, path, how);
        }
        auto const made = platform::native_seam().open_file(b, path, how & ~platform::open_direct);
        if (made >= 0) {
            (void)platform::native_seam().close(made);
        }
        return failed_with(std::errc::invalid_argument);
    };
    EXPECT_EQ(
        file(base, "f", mode::write, creation::always_new, file_handle::caching::none).error(),
        std::errc::not_supported);
    EXPECT_EQ(temporary.entries(), 0u);
}

TEST_F(file_fault_test, a_wait_for_a_lock_goes_on_after_a_signal) {
    make_file(temporary / "f", "x");
    auto a = file(base, "f", mode::write).value();
    auto b = file(base, "f", mode::write).value();
    struct sigaction ignored{};
    struct sigaction before{};
    ignored.sa_handler = [](int) {};  // and no SA_RESTART
    ASSERT_EQ(::sigaction(SIGUSR1, &ignored, &before), 0);
    auto lock = a.lock_range(0, 1).value();
    std::atomic<bool> locked = false;
    std::thread waiter([&] {
        auto const mine = b.lock_range(0, 1);
        locked = static_cast<bool>(mine);
    });
    for (int i = 0; i < 50; ++i) {
        ::pthread_kill(waiter.native_handle(), SIGUSR1);
        std::this_thread::sleep_for(200us);
    }
    ASSERT_TRUE(lock.unlock());
    waiter.join();
    EXPECT_TRUE(locked);
    ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace plumb::test
