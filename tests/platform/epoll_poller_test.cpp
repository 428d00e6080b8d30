// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "platform/seam.hpp"
#include "support/backend.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// From here on this process is refused the call, as by an old kernel or a sandbox. There is no way back.
bool refuse(unsigned call) {
    std::array filter{
        sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog const program{static_cast<unsigned short>(filter.size()), filter.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// @return null when all went well, else what did not
char const* wait_without_nanoseconds() {
    if (!refuse(SYS_epoll_pwait2)) {
        return "skip";
    }
    auto const m = io_multiplexer::make(multiplexer_kind::epoll);
    if (!m) {
        return "no multiplexer";
    }
    for (int i = 0; i < 5; ++i) {
        auto const before = platform::os().steady_now();
        record_of<async_wait> waited;
        auto operation = connect(async_wait(**m, 1500us), recorder(waited));
        operation.start();
        auto const turns = (*m)->counters().turns;
        while (!operation.completed()) {
            if (!(*m)->run()) {
                return "run failed";
            }
        }
        if (platform::os().steady_now() - before < 1'500'000) {
            return "a wait ended early";
        }
        if ((*m)->counters().turns - turns > 4) {
            return "it spins";
        }
    }
    for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code none;
        if (std::filesystem::read_symlink(entry, none) == "anon_inode:[timerfd]") {
            return nullptr;
        }
    }
    return "no timer was used";
}

TEST(epoll_poller_test, where_the_kernel_knows_no_nanoseconds_a_timer_ends_waits) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    auto const child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        char const* const failure = wait_without_nanoseconds();
        std::string const told = failure != nullptr ? failure : "";
        (void)!::write(ends[1], told.data(), told.size());
        ::_exit(0);
    }
    ::close(ends[1]);
    std::array<char, 64> told{};
    EXPECT_GE(::read(ends[0], told.data(), told.size() - 1), 0);
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (std::string(told.data()) == "skip") {
        GTEST_SKIP() << "this machine lets no process refuse itself a call";
    }
    EXPECT_STREQ(told.data(), "");
}

}  // namespace
}  // namespace plumb::test
