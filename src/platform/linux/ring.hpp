// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "platform/seam.hpp"

#include <cstddef>
#include <cstdint>

#include <liburing.h>

namespace plumb::platform {

/// How a request ended.
struct completion {
    std::uint64_t user_data;
    std::int32_t result;
    std::uint32_t flags;

    /// Which provided buffer was filled, where one was.
    [[nodiscard]] std::uint16_t buffer_id() const noexcept {
        return static_cast<std::uint16_t>(flags >> IORING_CQE_BUFFER_SHIFT);
    }
    /// Whether the request goes on.
    [[nodiscard]] bool more() const noexcept { return (flags & IORING_CQE_F_MORE) != 0; }
};

/// An io_uring instance: set up as well as the kernel can, entered once for all that is to be submitted and waited for.
/// Threads: one at a time; where `exclusive`, always the one that called `enable`. Allocates: in `open`.
class ring {
public:
    static constexpr unsigned submission_entries = 512;
    static constexpr unsigned completion_entries = 4096;

    ring() noexcept = default;
    ring(ring&& other) noexcept;
    ring& operator=(ring&& other) noexcept;
    ~ring();

    /// @param any_thread  whether threads may take turns with it, which costs the kernel's short cuts
    /// @return 0, or minus the error; function_not_supported where the kernel has a ring, but not what plumb needs
    outcome open(bool any_thread) noexcept;

    /// Before the first `enter`. Requests may be prepared earlier, and by other threads.
    outcome enable() noexcept;

    [[nodiscard]] bool exclusive() const noexcept { return exclusive_; }
    [[nodiscard]] bool has_multishot_receive() const noexcept { return has_multishot_receive_; }

    /// @return the next submission entry, all zero, to be filled, or null while all are taken
    [[nodiscard]] io_uring_sqe* next() noexcept {
        if (ring_.sq.sqe_tail == first_untaken_ + submission_entries) [[unlikely]] {
            return nullptr;
        }
        io_uring_sqe& entry = ring_.sq.sqes[ring_.sq.sqe_tail++ % submission_entries];
        // What newer versions of liburing do here; their preparing functions leave fields as they were.
        entry = io_uring_sqe();
        return &entry;
    }
    /// Names an entry until it is submitted; below `submission_entries`.
    [[nodiscard]] unsigned index(io_uring_sqe const& entry) const noexcept {
        return static_cast<unsigned>(&entry - ring_.sq.sqes);
    }

    /// How many entries are prepared that the kernel has not taken, and match.
    template <class Match>
    [[nodiscard]] std::size_t count_untaken(Match match) const noexcept {
        std::size_t count = 0;
        for (unsigned i = first_untaken_; i != ring_.sq.sqe_tail; ++i) {
            count += match(ring_.sq.sqes[i % submission_entries]) ? 1 : 0;
        }
        return count;
    }

    /// Of a file that is about to be closed: what the kernel has not taken fails, instead of being done to the next file
    /// of that number.
    void disown(int file) noexcept {
        for (unsigned i = first_untaken_; i != ring_.sq.sqe_tail; ++i) {
            io_uring_sqe& entry = ring_.sq.sqes[i % submission_entries];
            if (entry.fd == file) {
                entry.fd = -1;
            }
        }
    }

    /// How many completions are there that match.
    template <class Match>
    [[nodiscard]] std::size_t count_over(Match match) const noexcept {
        std::size_t count = 0;
        for (unsigned i = head(); i != tail(); ++i) {
            count += match(ring_.cq.cqes[i % completion_entries]) ? 1 : 0;
        }
        return count;
    }

    /// Whether there is something that only `enter` does.
    [[nodiscard]] bool must_enter() const noexcept {
        return ring_.sq.sqe_tail != first_untaken_ ||
               (IO_URING_READ_ONCE(*ring_.sq.kflags) & waiting_flags) != 0;
    }

    /// Submits everything, lets the kernel do what it has put off, and waits for `wait_for` completions.
    /// @param timeout  ns, -1: forever
    /// @return 0, also where it was interrupted or timed out, or minus the error
    outcome enter(unsigned wait_for, std::int64_t timeout) noexcept;

    /// The completions that are there lie between `head` and `tail`, which wrap.
    [[nodiscard]] unsigned head() const noexcept { return *ring_.cq.khead; }
    [[nodiscard]] unsigned tail() const noexcept {
        return io_uring_smp_load_acquire(ring_.cq.ktail);
    }
    [[nodiscard]] bool empty() const noexcept { return head() == tail(); }
    /// Takes the first of them.
    completion pop() noexcept {
        unsigned const first = head();
        io_uring_cqe const& entry = ring_.cq.cqes[first % completion_entries];
        completion const taken{entry.user_data, entry.res, entry.flags};
        io_uring_smp_store_release(ring_.cq.khead, first + 1);
        return taken;
    }

    outcome add_buffers(io_uring_buf_reg& what) noexcept {
        return io_uring_register_buf_ring(&ring_, &what, 0);
    }

private:
    static constexpr unsigned waiting_flags = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;

    outcome probe() noexcept;
    void close() noexcept;

    io_uring ring_{};
    bool open_ = false;
    bool exclusive_ = false;
    bool disabled_ = false;
    bool single_issuer_ = false;
    bool has_multishot_receive_ = false;
    // The ring's descriptor, or its number among those that the thread has registered.
    unsigned enter_fd_ = 0;
    unsigned enter_flags_ = 0;
    unsigned first_untaken_ = 0;  // the first entry that the kernel has not taken
};

}  // namespace plumb::platform
