// SPDX-License-Identifier: Apache-2.0
#include "support/refusal.hpp"

#include <cerrno>
#include <cstddef>
#include <stdexcept>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace plumb::test {

void refuse_system_call(long number, int error, std::uint32_t last_flag) {
    auto const refused = static_cast<std::uint32_t>(SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA));
    sock_filter filter[]{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[5])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, last_flag),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, last_flag, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, refused),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog const program{sizeof(filter) / sizeof(filter[0]), filter};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        throw std::runtime_error("the kernel takes no filter of system calls");
    }
}

}  // namespace plumb::test
