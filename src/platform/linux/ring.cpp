// SPDX-License-Identifier: Apache-2.0
#include "platform/linux/ring.hpp"

#include <cerrno>
#include <limits>
#include <utility>

namespace plumb::platform {
namespace {

constexpr unsigned common_flags = IORING_SETUP_CQSIZE;

// From the best to what every kernel has that is new enough. Work that is put off until the loop enters the kernel
// comes at no other time and needs no locks, but then one thread alone may enter.
constexpr unsigned exclusive_set_ups[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
        IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL | common_flags,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | common_flags,
};
constexpr unsigned shared_set_ups[] = {
    IORING_SETUP_SUBMIT_ALL | common_flags,
    common_flags,
};

constexpr unsigned needed_features = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE |
                                     IORING_FEAT_RW_CUR_POS | IORING_FEAT_FAST_POLL |
                                     IORING_FEAT_EXT_ARG;

constexpr int needed_operations[] = {
    IORING_OP_READ,     IORING_OP_READV,        IORING_OP_WRITE,   IORING_OP_WRITEV,
    IORING_OP_RECV,     IORING_OP_SEND,         IORING_OP_RECVMSG, IORING_OP_SENDMSG,
    IORING_OP_POLL_ADD, IORING_OP_ASYNC_CANCEL, IORING_OP_FSYNC,   IORING_OP_SYNC_FILE_RANGE,
};

constexpr auto any_place = std::numeric_limits<std::uint32_t>::max();

}  // namespace

ring::ring(ring&& other) noexcept { *this = std::move(other); }

ring& ring::operator=(ring&& other) noexcept {
    close();
    ring_ = other.ring_;
    open_ = std::exchange(other.open_, false);
    exclusive_ = other.exclusive_;
    disabled_ = other.disabled_;
    single_issuer_ = other.single_issuer_;
    has_multishot_receive_ = other.has_multishot_receive_;
    enter_fd_ = other.enter_fd_;
    enter_flags_ = other.enter_flags_;
    first_untaken_ = other.first_untaken_;
    return *this;
}

ring::~ring() { close(); }

void ring::close() noexcept {
    if (std::exchange(open_, false)) {
        if (enter_flags_ != 0) {
            io_uring_rsrc_update known{};
            known.offset = enter_fd_;
            (void)io_uring_register(static_cast<unsigned>(ring_.ring_fd),
                                    IORING_UNREGISTER_RING_FDS, &known, 1);
        }
        io_uring_queue_exit(&ring_);
    }
}

outcome ring::open(bool any_thread) noexcept {
    outcome made = -EINVAL;
    auto const try_flags = [&](unsigned flags) {
        io_uring_params p{};
        p.flags = flags;
        p.cq_entries = completion_entries;
        made = io_uring_queue_init_params(submission_entries, &ring_, &p);
        if (made >= 0 &&
            (p.sq_entries != submission_entries || p.cq_entries != completion_entries)) {
            io_uring_queue_exit(&ring_);
            made = -ENOSYS;
        }
        disabled_ = (flags & IORING_SETUP_R_DISABLED) != 0;
        single_issuer_ = (flags & IORING_SETUP_SINGLE_ISSUER) != 0;
        return made != -EINVAL;
    };
    if (!any_thread) {
        for (unsigned const flags : exclusive_set_ups) {
            if (made == -EINVAL) {
                exclusive_ = try_flags(flags);
            }
        }
    }
    for (unsigned const flags : shared_set_ups) {
        if (made == -EINVAL) {
            try_flags(flags);
        }
    }
    if (made < 0) {
        return made == -EINVAL ? -ENOSYS : made;
    }
    open_ = true;
    enter_fd_ = static_cast<unsigned>(ring_.ring_fd);
    enter_flags_ = 0;
    return probe();
}

outcome ring::probe() noexcept {
    if ((ring_.features & needed_features) != needed_features) {
        return -ENOSYS;
    }
    io_uring_probe* const known = io_uring_get_probe_ring(&ring_);
    if (known == nullptr) {
        return -ENOSYS;
    }
    bool has_all = true;
    for (int const operation : needed_operations) {
        has_all = has_all && io_uring_opcode_supported(known, operation);
    }
    // No probe names it, but it came with the same kernel as this operation.
    has_multishot_receive_ = io_uring_opcode_supported(known, IORING_OP_SEND_ZC);
    io_uring_free_probe(known);
    return has_all ? 0 : -ENOSYS;
}

outcome ring::enable() noexcept {
    if (disabled_) {
        if (int const enabled = io_uring_register(static_cast<unsigned>(ring_.ring_fd),
                                                  IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
            enabled < 0) {
            return enabled;
        }
        disabled_ = false;
    }
    // Spares each call a look-up. Known to this thread alone, also when it is taken back, which the kernel only
    // checks with a single issuer, and where it is told the ring by its descriptor: newer versions of liburing tell
    // it by the number, which on another thread is another ring's. Nothing is lost where it is refused.
    io_uring_rsrc_update known{};
    known.offset = any_place;
    known.data = static_cast<std::uint64_t>(ring_.ring_fd);
    if (single_issuer_ && io_uring_register(static_cast<unsigned>(ring_.ring_fd),
                                            IORING_REGISTER_RING_FDS, &known, 1) == 1) {
        enter_fd_ = known.offset;
        enter_flags_ = IORING_ENTER_REGISTERED_RING;
    }
    return 0;
}

outcome ring::enter(unsigned wait_for, std::int64_t timeout) noexcept {
    io_uring_smp_store_release(ring_.sq.ktail, ring_.sq.sqe_tail);
    ring_.sq.sqe_head = ring_.sq.sqe_tail;
    unsigned flags = enter_flags_ | IORING_ENTER_GETEVENTS;
    __kernel_timespec limit;
    io_uring_getevents_arg argument{};
    sigset_t* extra = nullptr;
    std::size_t extra_size = 0;
    if (timeout > 0) {
        limit.tv_sec = timeout / 1'000'000'000;
        limit.tv_nsec = timeout % 1'000'000'000;
        argument.ts = reinterpret_cast<std::uintptr_t>(&limit);
        flags |= IORING_ENTER_EXT_ARG;
        extra = reinterpret_cast<sigset_t*>(&argument);
        extra_size = sizeof(argument);
    }
    int const entered = io_uring_enter2(enter_fd_, ring_.sq.sqe_tail - first_untaken_, wait_for,
                                        flags, extra, extra_size);
    first_untaken_ = IO_URING_READ_ONCE(*ring_.sq.khead);
    switch (entered) {
    case -EINTR:
    case -ETIME:
        return 0;
    case -EAGAIN:
    case -EBUSY:
        // Short of memory, or too many completions wait: these come first.
        return empty() ? entered : 0;
    default:
        return entered < 0 ? entered : 0;
    }
}

}  // namespace plumb::platform
