// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/file_handle.hpp>

#include "platform/seam.hpp"
#include "support/allocations.hpp"
#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/temporary_directory.hpp"

#include <plumb/sim/world.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using namespace std::literals;
using mode = file_handle::mode;
using creation = file_handle::creation;
using caching = file_handle::caching;

class file_handle_test : public ::testing::Test {
protected:
    static int flags_of(file_handle const& f) {
        return ::fcntl(static_cast<int>(f.native()), F_GETFL);
    }
    static ino_t inode_of(file_handle const& f) {
        struct stat s{};
        EXPECT_EQ(::fstat(static_cast<int>(f.native()), &s), 0);
        return s.st_ino;
    }
    static std::string text_at(file_handle& f, extent_type offset, std::size_t size) {
        std::string text(size, '?');
        return text_of(f.read({buffer(text), offset}));
    }
    /// Starts a process that runs `body` and ends with what it returns.
    template <class Body>
    static pid_t start(Body body) {
        auto const child = ::fork();
        if (child == 0) {
            ::_exit(body());
        }
        return child;
    }
    static int end_of(pid_t child) {
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    temporary_directory temporary;
    path_handle const base = path_handle::directory(temporary.path()).value();
    std::size_t const open_before = open_descriptors();
    std::array<std::byte, 64> memory{};
};

TEST_F(file_handle_test, a_default_one_is_closed) {
    file_handle f;
    EXPECT_FALSE(f.is_open());
    EXPECT_EQ(f.kind(), handle_kind::file);
    EXPECT_EQ(f.alignment(), 1u);
    EXPECT_TRUE(f.close());
    EXPECT_EQ(f.read({buffer(memory), 0}).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.write({const_buffer(memory), 0}).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.barrier().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.maximum_extent().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.truncate(0).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.zero(0, 1).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.lock_range(0, 1).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.clone().error(), std::errc::bad_file_descriptor);
    EXPECT_FALSE(f.reopen(mode::read));
}

TEST_F(file_handle_test, opens_what_exists_for_reading_unless_told_otherwise) {
    make_file(temporary / "foo", "hello");
    auto f = file(base, "foo").value();
    EXPECT_EQ(flags_of(f) & O_ACCMODE, O_RDONLY);
    EXPECT_NE(::fcntl(static_cast<int>(f.native()), F_GETFD) & FD_CLOEXEC, 0);
    std::vector<std::byte> bytes(f.maximum_extent().value());
    auto const r = f.read({bytes, 0});
    EXPECT_EQ(text_of(r), "hello");
    EXPECT_EQ((*r)[0].data(), bytes.data());
    EXPECT_EQ(f.write({const_buffer(memory), 0}).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(file(base, "bar").error(), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(file({}, temporary / "foo")) << "absolute";
}

TEST_F(file_handle_test, a_write_at_an_offset_is_read_there) {
    auto f = file(base, "f", mode::write, creation::create_new).value();
    EXPECT_EQ(f.write({bytes_of("hello"), 0}).bytes_transferred(), 5u);
    EXPECT_EQ(f.write({bytes_of("world"), 10}).bytes_transferred(), 5u);
    EXPECT_EQ(text_at(f, 0, 64), "hello\0\0\0\0\0world"s);
    EXPECT_EQ(text_at(f, 3, 4), "lo\0\0"s);
    EXPECT_EQ(content_of(temporary / "f"), "hello\0\0\0\0\0world"s);
    EXPECT_EQ(f.maximum_extent().value(), 15u);
}

TEST_F(file_handle_test, a_read_at_or_beyond_the_end_is_success_with_no_bytes) {
    make_file(temporary / "f", "hello");
    auto f = file(base, "f").value();
    for (extent_type const offset : {5u, 6u, 1000000u}) {
        auto const r = f.read({buffer(memory), offset});
        EXPECT_TRUE(r);
        EXPECT_EQ(r.bytes_transferred(), 0u);
    }
    EXPECT_EQ(text_of(f.read({buffer(memory), 3})), "lo") << "a short read before it";
    EXPECT_EQ(f.read({buffer(memory), 1ull << 63}).error(), std::errc::invalid_argument);
}

TEST_F(file_handle_test, a_request_without_offset_is_at_the_position_and_moves_it) {
    make_file(temporary / "f", "one two three");
    auto f = file(base, "f", mode::write).value();
    std::array<std::byte, 4> four;
    EXPECT_EQ(text_of(f.read(buffer(four))), "one ");
    EXPECT_EQ(text_of(f.read({buffer(memory), 8})), "three") << "moves nothing";
    EXPECT_EQ(text_of(f.read(buffer(four))), "two ");
    EXPECT_TRUE(f.write(bytes_of("THREE")));
    EXPECT_EQ(content_of(temporary / "f"), "one two THREE");
}

TEST_F(file_handle_test, an_empty_request_returns_at_once) {
    auto f = file_handle::temporary_inode(base).value();
    EXPECT_TRUE(f.read({buffer(), 0}));
    EXPECT_TRUE(f.write({const_buffer(), 0}, 0ns));
    EXPECT_EQ(f.maximum_extent().value(), 0u);
}

TEST_F(file_handle_test, several_buffers_are_written_and_filled_in_order) {
    auto f = file_handle::temporary_inode(base).value();
    std::string const a = "one ";
    std::string const b = "two";
    std::array<const_buffer, 3> const from{bytes_of(a), const_buffer(), bytes_of(b)};
    EXPECT_EQ(f.write({from, 0}).bytes_transferred(), 7u);
    std::array<std::byte, 2> first;
    std::array<std::byte, 3> second;
    std::array<buffer, 2> const into{buffer(first), buffer(second)};
    EXPECT_EQ(text_of(f.read({into, 1})), "ne tw");
    auto const trimmed = f.read({buffers(into).first(3), 0});
    EXPECT_GE(trimmed.bytes_transferred(), 1u);
    EXPECT_LE(trimmed.bytes_transferred(), 3u);
}

TEST_F(file_handle_test, a_list_longer_than_the_system_takes_is_moved_whole) {
    std::string text(5000, ' ');
    std::ranges::generate(text, [n = 0]() mutable { return static_cast<char>('a' + n++ % 26); });
    std::vector<const_buffer> from;
    for (char const& c : text) {
        from.emplace_back(&c, 1);
    }
    auto f = file_handle::temporary_inode(base).value();
    EXPECT_EQ(f.write({from, 7}).bytes_transferred(), text.size());
    EXPECT_EQ(f.write(from).bytes_transferred(), text.size()) << "at the position";
    EXPECT_EQ(f.maximum_extent().value(), 5007u);
    EXPECT_TRUE(f.write({from, 7}));
    std::string back(6000, '?');
    std::vector<buffer> into;
    for (char& c : back) {
        into.emplace_back(&c, 1);
    }
    auto const r = f.read({into, 7});
    EXPECT_EQ(text_of(r), text) << "short at the end of the file";
}

TEST_F(file_handle_test, deadlines_are_not_supported_and_say_so) {
    make_file(temporary / "f", "hello");
    auto f = file(base, "f", mode::write).value();
    EXPECT_EQ(f.read({buffer(memory), 0}, 1s).error(), std::errc::not_supported);
    EXPECT_EQ(f.try_read({buffer(memory), 0}).error(), std::errc::not_supported);
    EXPECT_EQ(f.try_write_for({bytes_of("x"), 0}, 1s).error(), std::errc::not_supported);
    EXPECT_EQ(f.try_barrier().error(), std::errc::not_supported);
    EXPECT_EQ(f.try_barrier_for({}, barrier_kind::wait_all, 1s).error(), std::errc::not_supported);
    EXPECT_EQ(
        f.try_barrier_until({}, barrier_kind::wait_all, std::chrono::steady_clock::now()).error(),
        std::errc::not_supported);
    EXPECT_EQ(content_of(temporary / "f"), "hello");
}

TEST_F(file_handle_test, is_an_io_handle_like_any_other) {
    auto f = file_handle::temporary_inode(base).value();
    io_handle& h = f;
    EXPECT_EQ(h.write({bytes_of("text"), 2}).bytes_transferred(), 4u);
    EXPECT_EQ(text_of(h.read({buffer(memory), 2})), "text");
    EXPECT_TRUE(h.barrier());
}

// --- Creation.

TEST_F(file_handle_test, create_new_fails_where_there_is_one) {
    auto f = file(base, "f", mode::write, creation::create_new).value();
    EXPECT_TRUE(f.write({bytes_of("mine"), 0}));
    EXPECT_EQ(file(base, "f", mode::write, creation::create_new).error(), std::errc::file_exists);
    EXPECT_EQ(content_of(temporary / "f"), "mine");
    std::filesystem::create_symlink("nowhere", temporary / "link");
    EXPECT_EQ(file(base, "link", mode::write, creation::create_new).error(),
              std::errc::file_exists);
}

TEST_F(file_handle_test, if_needed_creates_or_opens) {
    auto const created = file(base, "f", mode::write, creation::if_needed).value();
    make_file(temporary / "f", "kept");
    auto opened = file(base, "f", mode::write, creation::if_needed).value();
    EXPECT_EQ(inode_of(created), inode_of(opened));
    EXPECT_EQ(text_at(opened, 0, 10), "kept");
}

TEST_F(file_handle_test, truncate_empties_what_exists_and_creates_nothing) {
    EXPECT_EQ(file(base, "f", mode::write, creation::truncate).error(),
              std::errc::no_such_file_or_directory);
    make_file(temporary / "f", "hello");
    EXPECT_EQ(file(base, "f", mode::read, creation::truncate).error(), std::errc::invalid_argument);
    EXPECT_EQ(content_of(temporary / "f"), "hello");
    auto const f = file(base, "f", mode::write, creation::truncate).value();
    EXPECT_EQ(f.maximum_extent().value(), 0u);
}

TEST_F(file_handle_test, always_new_replaces_the_file_and_leaves_the_old_one_to_its_users) {
    make_file(temporary / "f", "old");
    auto old = file(base, "f").value();
    auto fresh = file(base, "f", mode::write, creation::always_new).value();
    EXPECT_NE(inode_of(old), inode_of(fresh));
    EXPECT_EQ(fresh.maximum_extent().value(), 0u);
    EXPECT_TRUE(fresh.write({bytes_of("new"), 0}));
    EXPECT_EQ(text_at(old, 0, 10), "old");
    EXPECT_EQ(content_of(temporary / "f"), "new");
    EXPECT_TRUE(file(base, "g", mode::write, creation::always_new)) << "where there was none";
    EXPECT_EQ(temporary.entries(), 2u) << "nothing else is left behind";
}

TEST_F(file_handle_test, always_new_that_cannot_take_the_name_leaves_nothing_behind) {
    std::filesystem::create_directory(temporary / "dir");
    EXPECT_EQ(file(base, "dir", mode::write, creation::always_new).error(),
              std::errc::is_a_directory);
    EXPECT_FALSE(file(base, "dir/", mode::write, creation::always_new));
    EXPECT_EQ(file(base, "nothing/f", mode::write, creation::always_new).error(),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(file(base, "a\0b"s, mode::write, creation::always_new).error(), error::zero_in_path);
    EXPECT_EQ(temporary.entries(), 1u);
    EXPECT_EQ(open_descriptors(), open_before);
}

TEST_F(file_handle_test, always_new_is_never_seen_half_way) {
    make_file(temporary / "f", "x");
    std::atomic<bool> over = false;
    std::atomic<int> missing = 0;
    std::thread watcher([&] {
        while (!over) {
            missing += file(base, "f") ? 0 : 1;
        }
    });
    for (int i = 0; i < 500; ++i) {
        EXPECT_TRUE(file(base, "f", mode::write, creation::always_new));
    }
    over = true;
    watcher.join();
    EXPECT_EQ(missing, 0);
}

TEST_F(file_handle_test, a_temporary_inode_has_no_name_and_is_gone_when_closed) {
    auto f = file_handle::temporary_inode(base).value();
    EXPECT_TRUE(f.write({bytes_of("secret"), 0}));
    EXPECT_EQ(text_at(f, 0, 10), "secret");
    EXPECT_EQ(temporary.entries(), 0u);
    struct stat s{};
    ASSERT_EQ(::fstat(static_cast<int>(f.native()), &s), 0);
    EXPECT_EQ(s.st_nlink, 0u);
}

TEST_F(file_handle_test, names_are_looked_up_in_the_directory_that_was_opened) {
    std::filesystem::create_directory(temporary / "dir");
    make_file(temporary / "dir/f", "mine");
    auto const dir = path_handle::directory(base, "dir").value();
    std::filesystem::rename(temporary / "dir", temporary / "moved");
    std::filesystem::create_directory(temporary / "dir");
    make_file(temporary / "dir/f", "a trap");
    auto f = file(dir, "f").value();
    EXPECT_EQ(text_at(f, 0, 10), "mine");
    EXPECT_TRUE(file(dir, "new", mode::write, creation::create_new));
    EXPECT_TRUE(file(dir, "f", mode::write, creation::always_new));
    EXPECT_TRUE(std::filesystem::exists(temporary / "moved/new"));
    EXPECT_FALSE(std::filesystem::exists(temporary / "dir/new"));
    EXPECT_EQ(content_of(temporary / "dir/f"), "a trap");
    EXPECT_EQ(content_of(temporary / "moved/f"), "");
}

TEST_F(file_handle_test, a_directory_that_is_renamed_all_the_time_never_diverts_a_new_file) {
    std::filesystem::create_directory(temporary / "dir");
    std::filesystem::create_directory(temporary / "trap");
    auto const dir = path_handle::directory(base, "dir").value();
    std::atomic<bool> over = false;
    std::thread renamer([&] {
        while (!over) {
            // Exchanges the two.
            ::renameat2(static_cast<int>(base.native()), "dir", static_cast<int>(base.native()),
                        "trap", RENAME_EXCHANGE);
        }
    });
    for (int i = 0; i < 300; ++i) {
        EXPECT_TRUE(file(dir, "f", mode::write, creation::always_new));
        EXPECT_TRUE(file(base, "dir/f", mode::write, creation::always_new));
    }
    over = true;
    renamer.join();
    // Each of the second kind is whole in one of both: no nameless half of it is left in the other.
    for (auto const* const name : {"dir", "trap"}) {
        for (auto const& entry : std::filesystem::directory_iterator(temporary / name)) {
            EXPECT_EQ(entry.path().filename(), "f");
        }
    }
}

// --- Modes and caching.

TEST_F(file_handle_test, an_append_goes_to_the_end_whatever_its_offset) {
    make_file(temporary / "f", "start");
    auto f = file(base, "f", mode::append).value();
    EXPECT_EQ(f.write({bytes_of(" one"), 0}).bytes_transferred(), 4u);
    EXPECT_EQ(f.write(bytes_of(" two")).bytes_transferred(), 4u);
    EXPECT_EQ(content_of(temporary / "f"), "start one two");
    EXPECT_EQ(f.read({buffer(memory), 0}).error(), std::errc::bad_file_descriptor);
}

TEST_F(file_handle_test, appends_of_two_processes_stay_whole) {
    make_file(temporary / "f", "");
    constexpr int records = 500;
    auto const append = [this](char letter) {
        auto f = file(base, "f", mode::append).value();
        std::string const half(50, letter);
        std::string const rest = std::string(49, letter) + '\n';
        std::array<const_buffer, 2> const record{bytes_of(half), bytes_of(rest)};
        for (int i = 0; i < records; ++i) {
            if (f.write({record, 0}).bytes_transferred() != 100) {
                return 1;
            }
        }
        return 0;
    };
    auto const other = start([&] { return append('b'); });
    EXPECT_EQ(append('a'), 0);
    EXPECT_EQ(end_of(other), 0);
    auto const content = content_of(temporary / "f");
    ASSERT_EQ(content.size(), 2u * records * 100);
    for (std::size_t at = 0; at < content.size(); at += 100) {
        auto const line = std::string_view(content).substr(at, 100);
        EXPECT_EQ(line.find_first_not_of(line.front()), 99u) << line;
    }
}

TEST_F(file_handle_test, an_append_of_a_longer_list_than_one_call_takes_is_partial) {
    auto f = file(base, "f", mode::append, creation::create_new).value();
    std::string const x = "x";
    std::vector<const_buffer> const list(1500, bytes_of(x));
    EXPECT_EQ(f.write(list).bytes_transferred(), platform::most_buffers);
    EXPECT_EQ(f.maximum_extent().value(), platform::most_buffers);
}

TEST_F(file_handle_test, attributes_can_be_asked_for_without_reading) {
    make_file(temporary / "f", "hello");
    auto f = file(base, "f", mode::attributes).value();
    EXPECT_EQ(f.maximum_extent().value(), 5u);
    EXPECT_EQ(f.read({buffer(memory), 0}).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(f.write({bytes_of("x"), 0}).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(file(base, "g", mode::attributes, creation::if_needed).error(),
              std::errc::invalid_argument);
    EXPECT_FALSE(std::filesystem::exists(temporary / "g"));
}

TEST_F(file_handle_test, caching_of_reads_writes_through) {
    make_file(temporary / "f", "");
    auto const f = file(base, "f", mode::write, creation::open_existing, caching::reads).value();
    EXPECT_EQ(flags_of(f) & O_SYNC, O_SYNC);
    EXPECT_EQ(flags_of(f) & O_DIRECT, 0);
    EXPECT_EQ(f.alignment(), 1u);
}

TEST_F(file_handle_test, without_caching_what_is_misaligned_is_a_clear_error) {
    make_file(temporary / "f", std::string(8192, 'x'));
    auto opened = file(base, "f", mode::write, creation::open_existing, caching::none);
    if (!opened && opened.error() == std::errc::not_supported) {
        GTEST_SKIP() << "the file system of temporary files has no direct i/o";
    }
    auto& f = opened.value();
    auto const a = f.alignment();
    ASSERT_GT(a, 1u);
    ASSERT_EQ(4096 % a, 0u);
    alignas(4096) static std::array<std::byte, 8192> room;
    EXPECT_EQ(f.read({buffer(room.data(), 4096), 0}).bytes_transferred(), 4096u);
    EXPECT_EQ(f.write({const_buffer(room.data(), 4096), 4096}).bytes_transferred(), 4096u);
    EXPECT_EQ(f.read({buffer(room.data() + 1, a), 0}).error(), error::misaligned);
    EXPECT_EQ(f.read({buffer(room.data(), a + 1), 0}).error(), error::misaligned);
    EXPECT_EQ(f.read({buffer(room.data(), a), 1}).error(), error::misaligned);
    EXPECT_EQ(f.write({const_buffer(room.data(), a), a / 2}).error(), error::misaligned);
    std::array<buffer, 2> const list{buffer(room.data(), a), buffer(room.data() + a, 1)};
    EXPECT_EQ(f.read({list, 0}).error(), error::misaligned);
    EXPECT_EQ(f.read(buffer(room.data(), a)).bytes_transferred(), a) << "at the position";
}

TEST_F(file_handle_test, a_file_system_without_direct_io_says_so) {
    EXPECT_EQ(file({}, "/proc/version", mode::read, creation::open_existing, caching::none).error(),
              std::errc::not_supported);
}

// --- Extents.

TEST_F(file_handle_test, truncate_cuts_and_extends) {
    make_file(temporary / "f", "hello");
    auto f = file(base, "f", mode::write).value();
    ASSERT_TRUE(f.truncate(2));
    EXPECT_EQ(content_of(temporary / "f"), "he");
    ASSERT_TRUE(f.truncate(4));
    EXPECT_EQ(content_of(temporary / "f"), "he\0\0"s);
    auto const reader = f.reopen(mode::read).value();
    EXPECT_FALSE(file_handle(f.reopen(mode::read).value()).truncate(0));
    EXPECT_EQ(reader.maximum_extent().value(), 4u);
}

TEST_F(file_handle_test, zero_gives_space_back_and_keeps_the_size) {
    auto f = file(base, "f", mode::write, creation::create_new).value();
    std::string const text(1 << 20, 'x');
    ASSERT_EQ(f.write({bytes_of(text), 0}).bytes_transferred(), text.size());
    ASSERT_TRUE(f.barrier());
    struct stat before{};
    struct stat after{};
    ASSERT_EQ(::fstat(static_cast<int>(f.native()), &before), 0);
    ASSERT_TRUE(f.zero(4096, text.size()));
    ASSERT_EQ(::fstat(static_cast<int>(f.native()), &after), 0);
    EXPECT_LT(after.st_blocks, before.st_blocks);
    EXPECT_EQ(f.maximum_extent().value(), text.size());
    EXPECT_EQ(text_at(f, 4094, 4), "xx\0\0"s);
    ASSERT_TRUE(f.zero(10, 3)) << "of any alignment";
    EXPECT_EQ(text_at(f, 9, 5), "x\0\0\0x"s);
    EXPECT_TRUE(f.zero(0, 0));
    EXPECT_TRUE(f.zero(2 << 20, 10)) << "beyond the end";
    EXPECT_EQ(f.maximum_extent().value(), text.size());
}

TEST_F(file_handle_test, extents_are_cloned_between_files) {
    make_file(temporary / "f", "0123456789");
    auto from = file(base, "f").value();
    auto to = file(base, "g", mode::write, creation::create_new).value();
    EXPECT_EQ(from.clone_extents(2, 5, to, 3).value(), 5u);
    EXPECT_EQ(content_of(temporary / "g"), "\0\0\0"
                                           "23456"s);
    EXPECT_EQ(from.clone_extents(8, 100, to, 0).value(), 2u) << "to the end of the file";
    EXPECT_EQ(from.clone_extents(10, 5, to, 0).value(), 0u);
    EXPECT_EQ(from.clone_extents(1000, 5, to, 0).value(), 0u);
    EXPECT_EQ(content_of(temporary / "g"), "89\0"
                                           "23456"s);
    EXPECT_FALSE(to.clone_extents(0, 1, from, 0)) << "the other is not open for writing";
    auto appending = file(base, "g", mode::append).value();
    EXPECT_EQ(from.clone_extents(0, 1, appending, 0).error(), std::errc::not_supported);
}

TEST_F(file_handle_test, overlapping_extents_are_cloned_as_they_were) {
    std::string content(200000, ' ');
    std::ranges::generate(content,
                          [n = 0u]() mutable { return static_cast<char>(++n * 31 % 251); });
    struct range {
        std::size_t from, bytes, to;
    };
    for (auto const r : {range{0, 150000, 50000}, range{50000, 150000, 0}, range{0, 100000, 1},
                         range{1, 100000, 0}, range{7, 100, 7}, range{100000, 100000, 150000}}) {
        auto expected = content;
        expected.resize(std::max(content.size(), r.to + r.bytes));
        std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(r.from), r.bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(r.to));
        make_file(temporary / "f", content);
        auto f = file(base, "f", mode::write).value();
        EXPECT_EQ(f.clone_extents(r.from, r.bytes, f, r.to).value(), r.bytes);
        EXPECT_TRUE(content_of(temporary / "f") == expected) << r.from << ' ' << r.to;
        // By two handles of one file, too.
        make_file(temporary / "f", content);
        auto same = f.reopen(mode::write).value();
        EXPECT_EQ(f.clone_extents(r.from, r.bytes, same, r.to).value(), r.bytes);
        EXPECT_TRUE(content_of(temporary / "f") == expected) << r.from << ' ' << r.to;
    }
}

// --- Barriers.

TEST_F(file_handle_test, every_kind_of_barrier_returns_the_buffers_of_the_request) {
    auto f = file(base, "f", mode::write, creation::create_new).value();
    std::string const text = "text";
    ASSERT_TRUE(f.write({bytes_of(text), 0}));
    for (auto const kind :
         {barrier_kind::nowait_data_only, barrier_kind::wait_data_only, barrier_kind::wait_all}) {
        EXPECT_TRUE(f.barrier({}, kind));
        auto const r = f.barrier({bytes_of(text), 0}, kind);
        EXPECT_EQ(r.bytes_transferred(), text.size());
    }
}

TEST_F(file_handle_test, a_barrier_on_a_pipe_is_over_at_once) {
    auto pipe = pipe_handle::anonymous_pipe().value();
    EXPECT_TRUE(pipe.writer.barrier());
    EXPECT_TRUE(pipe.writer.try_barrier());
    EXPECT_TRUE(pipe.writer.try_barrier_for({}, barrier_kind::wait_all, 1s));
    ASSERT_TRUE(pipe.writer.close());
    EXPECT_EQ(pipe.writer.barrier().error(), std::errc::bad_file_descriptor);
}

// --- Locks.

TEST_F(file_handle_test, a_lock_excludes_other_handles) {
    make_file(temporary / "f", "x");
    auto a = file(base, "f", mode::write).value();
    auto b = file(base, "f", mode::write).value();
    auto lock = a.lock_range(0, 10).value();
    EXPECT_TRUE(lock.is_locked());
    EXPECT_EQ(b.try_lock_range(5, 10).error(), std::errc::timed_out);
    EXPECT_EQ(b.try_lock_range(0, 1, range_lock::kind_type::shared).error(), std::errc::timed_out);
    EXPECT_TRUE(b.try_lock_range(10, 10)) << "the next bytes are free";
    EXPECT_EQ(b.try_lock_range(2, 0).error(), std::errc::timed_out) << "all from there";
    EXPECT_TRUE(lock.unlock());
    EXPECT_FALSE(lock.is_locked());
    EXPECT_TRUE(lock.unlock());
    EXPECT_TRUE(b.try_lock_range(5, 10));
}

TEST_F(file_handle_test, shared_locks_go_together) {
    make_file(temporary / "f", "x");
    auto a = file(base, "f").value();
    auto b = file(base, "f", mode::write).value();
    auto const first = a.lock_range(0, 0, range_lock::kind_type::shared).value();
    auto const second = b.try_lock_range(0, 0, range_lock::kind_type::shared);
    EXPECT_TRUE(second);
    EXPECT_EQ(b.try_lock_range(0, 1).error(), std::errc::timed_out);
    EXPECT_EQ(a.lock_range(0, 1).error(), std::errc::bad_file_descriptor)
        << "an exclusive one needs a handle for writing";
}

TEST_F(file_handle_test, a_lock_ends_with_its_object_and_moves) {
    make_file(temporary / "f", "x");
    auto a = file(base, "f", mode::write).value();
    auto b = file(base, "f", mode::write).value();
    {
        auto first = a.lock_range(0, 1).value();
        auto moved = std::move(first);
        EXPECT_FALSE(b.try_lock_range(0, 1));
        auto handle = std::move(a);
        EXPECT_FALSE(b.try_lock_range(0, 1)) << "the handle may move, too";
        a = std::move(handle);
        range_lock other = a.lock_range(5, 1).value();
        moved = std::move(other);
        EXPECT_TRUE(b.try_lock_range(0, 1));
        EXPECT_FALSE(b.try_lock_range(5, 1));
    }
    EXPECT_TRUE(b.try_lock_range(0, 0));
}

TEST_F(file_handle_test, a_wait_for_a_lock_ends_at_the_deadline) {
    make_file(temporary / "f", "x");
    auto a = file(base, "f", mode::write).value();
    auto b = file(base, "f", mode::write).value();
    auto const lock = a.lock_range(0, 1).value();
    auto const begin = std::chrono::steady_clock::now();
    EXPECT_EQ(b.lock_range(0, 1, range_lock::kind_type::exclusive, 20ms).error(),
              std::errc::timed_out);
    auto const waited = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(waited, 20ms);
    EXPECT_LT(waited, patience);
    EXPECT_EQ(
        b.lock_range(0, 1, range_lock::kind_type::exclusive, std::chrono::system_clock::now() - 1s)
            .error(),
        std::errc::timed_out);
}

TEST_F(file_handle_test, locks_exclude_other_processes_and_are_waited_for) {
    make_file(temporary / "f", "");
    auto f = file(base, "f", mode::write).value();
    auto const waits = {deadline(), deadline(patience)};
    for (auto const limit : waits) {
        auto lock = f.lock_range(0, 0).value();
        auto pipe = pipe_handle::anonymous_pipe().value();
        auto const other = start([&] {
            auto g = file(base, "f", mode::write).value();
            if (g.try_lock_range(0, 0).error() != std::errc::timed_out) {
                return 1;
            }
            (void)pipe.writer.write(bytes_of("x"));
            auto const mine = g.lock_range(0, 0, range_lock::kind_type::exclusive, limit);
            return mine && text_at(g, 0, 4) == "done" ? 0 : 2;
        });
        // While the other waits for the lock, or is about to.
        ASSERT_EQ(text_of(pipe.reader.read(buffer(memory), patience)), "x");
        ASSERT_TRUE(f.write({bytes_of("done"), 0}));
        ASSERT_TRUE(lock.unlock());
        EXPECT_EQ(end_of(other), 0);
        ASSERT_TRUE(f.truncate(0));
    }
}

TEST_F(file_handle_test, two_processes_that_lock_lose_no_increment) {
    make_file(temporary / "f", "0000");
    constexpr int rounds = 300;
    auto const count = [this](deadline limit) {
        auto f = file(base, "f", mode::write).value();
        for (int i = 0; i < rounds; ++i) {
            auto const lock = f.lock_range(0, 4, range_lock::kind_type::exclusive, limit);
            auto next = std::to_string(std::stoi(text_at(f, 0, 4)) + 1);
            next.insert(0, 4 - next.size(), '0');
            if (!lock || !f.write({bytes_of(next), 0})) {
                return 1;
            }
        }
        return 0;
    };
    auto const other = start([&] { return count({}); });
    EXPECT_EQ(count(patience), 0);
    EXPECT_EQ(end_of(other), 0);
    EXPECT_EQ(content_of(temporary / "f"), "0600");
}

// --- Ownership.

TEST_F(file_handle_test, a_clone_shares_the_open_file) {
    make_file(temporary / "f", "one two");
    auto f = file(base, "f", mode::write).value();
    auto copy = f.clone().value();
    EXPECT_NE(::fcntl(static_cast<int>(copy.native()), F_GETFD) & FD_CLOEXEC, 0);
    std::array<std::byte, 4> four;
    EXPECT_EQ(text_of(f.read(buffer(four))), "one ");
    EXPECT_EQ(text_of(copy.read(buffer(four))), "two") << "and its position";
    auto const lock = f.lock_range(0, 1).value();
    EXPECT_TRUE(copy.try_lock_range(0, 1)) << "and its locks";
    ASSERT_TRUE(f.close());
    EXPECT_EQ(text_at(copy, 0, 3), "one");
}

TEST_F(file_handle_test, reopening_gives_another_mode_of_the_same_file) {
    make_file(temporary / "f", "hello");
    auto f = file(base, "f").value();
    std::filesystem::rename(temporary / "f", temporary / "g");
    make_file(temporary / "f", "another");
    auto writer = f.reopen(mode::write).value();
    EXPECT_EQ(inode_of(f), inode_of(writer));
    EXPECT_TRUE(writer.write({bytes_of("J"), 0}));
    EXPECT_EQ(text_at(f, 0, 10), "Jello");
    auto appender = f.reopen(mode::append, caching::reads).value();
    EXPECT_TRUE(appender.write({bytes_of("!"), 0}));
    EXPECT_EQ(text_at(f, 0, 10), "Jello!");
    EXPECT_EQ(flags_of(appender) & O_SYNC, O_SYNC);
    auto nameless = file_handle::temporary_inode(base).value();
    ASSERT_TRUE(nameless.write({bytes_of("x"), 0}));
    auto again = nameless.reopen(mode::read).value();
    EXPECT_EQ(text_at(again, 0, 1), "x");
}

TEST_F(file_handle_test, an_adopted_handle_keeps_its_flags_and_is_known_to_append) {
    make_file(temporary / "f", "hello");
    auto const native = ::open((temporary / "f").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    auto f = file_handle::adopt(native);
    EXPECT_NE(flags_of(f) & O_APPEND, 0);
    std::string const x = "x";
    std::vector<const_buffer> const list(1500, bytes_of(x));
    EXPECT_EQ(f.write(list).bytes_transferred(), platform::most_buffers);
    EXPECT_EQ(f.release().value(), native);
    EXPECT_FALSE(f.is_open());
    auto const again = file_handle::adopt(native);
    EXPECT_EQ(again.maximum_extent().value(), 5u + platform::most_buffers);
}

TEST_F(file_handle_test, what_cannot_be_opened_is_a_clear_error_and_leaks_nothing) {
    EXPECT_EQ(file(base, "").error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(file(base, "a\0b"s).error(), error::zero_in_path);
    EXPECT_EQ(file(base, std::string(256, 'x'), mode::write, creation::if_needed).error(),
              std::errc::filename_too_long);
    EXPECT_EQ(file(base, ".", mode::write).error(), std::errc::is_a_directory);
    auto directory = file(base, ".").value();
    EXPECT_EQ(directory.read({buffer(memory), 0}).error(), std::errc::is_a_directory);
    ASSERT_TRUE(directory.close());
    {
        full_descriptor_table const full;
        EXPECT_EQ(file(base, "f", mode::write, creation::always_new).error(),
                  std::errc::too_many_files_open);
        EXPECT_EQ(file(base, "f", mode::write, creation::create_new).error(),
                  std::errc::too_many_files_open);
    }
    EXPECT_EQ(temporary.entries(), 0u);
    EXPECT_EQ(open_descriptors(), open_before);
}

TEST_F(file_handle_test, io_allocates_nothing) {
    auto f = file(base, "f", mode::write, creation::create_new).value();
    auto other = file_handle::temporary_inode(base).value();
    std::string const text = "text";
    auto const before = heap_allocations();
    EXPECT_TRUE(f.write({bytes_of(text), 0}));
    EXPECT_TRUE(f.read({buffer(memory), 0}));
    EXPECT_TRUE(f.clone_extents(0, 4, other, 0));
    EXPECT_TRUE(f.clone_extents(0, 3, f, 1));
    EXPECT_TRUE(f.lock_range(0, 1));
    EXPECT_TRUE(f.zero(0, 2));
    EXPECT_TRUE(f.truncate(1));
    EXPECT_TRUE(f.barrier());
    EXPECT_TRUE(file(base, "f", mode::write, creation::always_new));
    EXPECT_EQ(heap_allocations(), before);
}

TEST_F(file_handle_test, there_are_no_simulated_files) {
    sim::world const world(1);
    EXPECT_EQ(file({}, "f").error(), std::errc::function_not_supported);
}

}  // namespace
}  // namespace plumb::test
