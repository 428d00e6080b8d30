// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/path_handle.hpp>

#include "support/descriptors.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

namespace plumb::test {
namespace {

using namespace std::literals;

class path_handle_test : public ::testing::Test {
protected:
    static bool same_place(path_handle const& a, path_handle const& b) {
        struct stat first{};
        struct stat second{};
        return ::fstat(static_cast<int>(a.native()), &first) == 0 &&
               ::fstat(static_cast<int>(b.native()), &second) == 0 &&
               first.st_dev == second.st_dev && first.st_ino == second.st_ino;
    }

    temporary_directory temporary;
    std::size_t const open_before = open_descriptors();
};

TEST_F(path_handle_test, a_default_one_is_closed_and_stands_for_the_working_directory) {
    path_handle const working;
    EXPECT_FALSE(working.is_open());
    EXPECT_EQ(working.kind(), handle_kind::path);
    auto const dot = path_handle::directory(working, ".").value();
    auto const absolute = path_handle::directory(std::filesystem::current_path()).value();
    EXPECT_TRUE(same_place(dot, absolute));
    EXPECT_EQ(working.clone().error(), std::errc::bad_file_descriptor);
}

TEST_F(path_handle_test, opens_relative_to_another) {
    std::filesystem::create_directories(temporary / "a/b");
    auto const a = path_handle::directory(temporary / "a").value();
    auto const below = path_handle::path(a, "b").value();
    EXPECT_TRUE(same_place(below, path_handle::path(temporary / "a/b").value()));
    EXPECT_TRUE(same_place(path_handle::path(a, (temporary / "a")).value(), a))
        << "an absolute path needs no base";
    EXPECT_NE(::fcntl(static_cast<int>(below.native()), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(path_handle_test, stays_the_same_place_when_that_is_renamed_and_another_takes_its_name) {
    std::filesystem::create_directories(temporary / "dir/inner");
    auto const dir = path_handle::directory(temporary / "dir").value();
    auto const inner = path_handle::directory(dir, "inner").value();
    std::filesystem::rename(temporary / "dir", temporary / "moved");
    std::filesystem::create_directories(temporary / "dir/inner");
    EXPECT_TRUE(same_place(path_handle::directory(dir, "inner").value(), inner));
    EXPECT_FALSE(same_place(path_handle::directory(temporary / "dir/inner").value(), inner));
}

TEST_F(path_handle_test, a_file_is_a_place_but_no_directory) {
    make_file(temporary / "file", "x");
    auto const file = path_handle::path(temporary / "file").value();
    EXPECT_EQ(path_handle::directory(temporary / "file").error(), std::errc::not_a_directory);
    EXPECT_EQ(path_handle::path(file, "below").error(), std::errc::not_a_directory);
}

TEST_F(path_handle_test, a_clone_is_the_same_place_and_lives_on) {
    auto original = path_handle::directory(temporary.path()).value();
    auto const copy = original.clone().value();
    EXPECT_TRUE(same_place(original, copy));
    EXPECT_NE(::fcntl(static_cast<int>(copy.native()), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_TRUE(original.close());
    EXPECT_TRUE(path_handle::path(copy, "."));
}

TEST_F(path_handle_test, a_released_one_can_be_adopted) {
    auto original = path_handle::directory(temporary.path()).value();
    auto const adopted = path_handle::adopt(original.release().value());
    EXPECT_FALSE(original.is_open());
    EXPECT_TRUE(path_handle::path(adopted, "."));
}

TEST_F(path_handle_test, what_cannot_be_opened_is_a_clear_error_and_leaks_nothing) {
    EXPECT_EQ(path_handle::path(temporary / "nothing").error(),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(path_handle::path("").error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(path_handle::path("/tmp\0/etc"s).error(), error::zero_in_path);
    EXPECT_EQ(path_handle::path(std::string(5000, 'x')).error(), std::errc::filename_too_long);
    EXPECT_EQ(path_handle::path(std::string(300, 'x')).error(), std::errc::filename_too_long);
    std::filesystem::create_symlink("loop", temporary / "loop");
    EXPECT_EQ(path_handle::path(temporary / "loop").error(),
              std::errc::too_many_symbolic_link_levels);
    {
        full_descriptor_table const full;
        EXPECT_EQ(path_handle::path("/").error(), std::errc::too_many_files_open);
    }
    EXPECT_EQ(open_descriptors(), open_before);
}

}  // namespace
}  // namespace plumb::test
