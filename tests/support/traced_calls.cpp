// SPDX-License-Identifier: Apache-2.0
#include "support/traced_calls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <utility>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::test {
namespace {

constexpr long divider = SYS_getppid;  // which nobody else calls
constexpr int refused = 77;

std::string name_of(long number) {
    constexpr std::array<std::pair<long, char const*>, 29> names{{
        {SYS_read, "read"},
        {SYS_readv, "readv"},
        {SYS_preadv2, "preadv2"},
        {SYS_recvfrom, "recvfrom"},
        {SYS_recvmsg, "recvmsg"},
        {SYS_write, "write"},
        {SYS_writev, "writev"},
        {SYS_pwritev2, "pwritev2"},
        {SYS_sendto, "sendto"},
        {SYS_sendmsg, "sendmsg"},
        {SYS_accept4, "accept4"},
        {SYS_connect, "connect"},
        {SYS_getsockopt, "getsockopt"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_epoll_pwait, "epoll_wait"},
        {SYS_epoll_pwait2, "epoll_pwait2"},
        {SYS_epoll_ctl, "epoll_ctl"},
        {SYS_io_uring_enter, "io_uring_enter"},
        {SYS_poll, "poll"},
        {SYS_ppoll, "ppoll"},
        {SYS_fsync, "fsync"},
        {SYS_fdatasync, "fdatasync"},
        {SYS_futex, "futex"},
        {SYS_mmap, "mmap"},
        {SYS_munmap, "munmap"},
        {SYS_brk, "brk"},
        {SYS_fcntl, "fcntl"},
        {SYS_rt_sigprocmask, "rt_sigprocmask"},
        {SYS_close, "close"},
    }};
    auto const* const known = std::ranges::find(names, number, [](auto& n) { return n.first; });
    return known != names.end() ? known->second : "system call " + std::to_string(number);
}

[[noreturn]] void run_traced(std::function<void(std::function<void()> const&)> const& body) {
    bool const failed_before = ::testing::Test::HasFailure();
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
        ::_exit(refused);
    }
    ::raise(SIGSTOP);
    body([] { ::syscall(divider); });
    ::_exit(::testing::Test::HasFailure() && !failed_before ? 1 : 0);
}

}  // namespace

std::vector<std::string>
traced_calls(std::function<void(std::function<void()> const& divide)> const& body) {
    auto const child = ::fork();
    if (child == 0) {
        run_traced(body);
    }
    std::vector<std::string> calls;  // the last one is of what comes after the last division
    int status = 0;
    bool traced = false;
    while (::waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        int signal = WSTOPSIG(status);
        if (!std::exchange(traced, true)) {
            ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
            signal = 0;
        } else if (signal == (SIGTRAP | 0x80)) {
            signal = 0;
            __ptrace_syscall_info info{};
            ::ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info);
            auto const number = static_cast<long>(info.entry.nr);
            if (info.op != PTRACE_SYSCALL_INFO_ENTRY) {
            } else if (number == divider) {
                calls.emplace_back();
            } else if (!calls.empty()) {
                calls.back() += (calls.back().empty() ? "" : " ") + name_of(number);
            }
        }
        ::ptrace(PTRACE_SYSCALL, child, nullptr, static_cast<std::intptr_t>(signal));
    }
    EXPECT_TRUE(WIFEXITED(status)) << "the traced process ended by a signal";
    if (!WIFEXITED(status) || WEXITSTATUS(status) == refused) {
        return {};
    }
    EXPECT_EQ(WEXITSTATUS(status), 0) << "a check failed in the traced process";
    if (!calls.empty()) {
        calls.pop_back();
    }
    return calls;
}

}  // namespace plumb::test
