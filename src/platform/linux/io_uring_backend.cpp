// SPDX-License-Identifier: Apache-2.0
#include "io/io_uring_backend.hpp"

#include <plumb/base/assert.hpp>

#include "io/io_lifecycle.hpp"
#include "io/readiness_backend.hpp"
#include "io/rest_of.hpp"
#include "io/slot_table.hpp"
#include "platform/linux/file_requests.hpp"
#include "platform/linux/held_writes.hpp"
#include "platform/linux/receive_buffers.hpp"
#include "platform/linux/ring.hpp"
#include "platform/linux/ring_slot.hpp"
#include "platform/posix/native_seam.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

// Requests (see `request`) are only prepared when operations start and are cancelled; `reap` hands
// them to the kernel and waits, in one call. Bytes that were received without a read that waits are
// parked in the slot; where there are any, or the kernel may still receive more, nothing reads the
// descriptor directly, so that the bytes keep their order.
//
// Operations on files are no direction's: any number of one handle's are in flight, each as a
// file_request, and what finds none free waits in `files_waiting_`.
namespace plumb::platform {
namespace {

/// A number that no other thread has or had.
std::uint64_t this_thread_number() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    static thread_local constinit std::uint64_t number = 0;
    if (number == 0) [[unlikely]] {
        number = last.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    return number;
}

/// What the kernel reads until the entry that points to it is submitted.
struct message {
    msghdr header;
    alignas(native_address) std::byte name[sizeof(native_address)];
};

/// What the kernel writes the sender's address to.
struct receiving {
    msghdr header;
    native_address name;
};

constexpr outcome canceled = failed_with(std::errc::operation_canceled);

class io_uring_backend final : public io_backend {
    using table = slot_table<ring_slot>;
    using direction = ring_slot::direction;

public:
    io_uring_backend(io_multiplexer& m, ring&& r, int wake, table& slots,
                     std::unique_ptr<message[]> messages) noexcept
        : io_backend(m),
          ring_(std::move(r)),
          wake_(wake),
          slots_(slots),
          messages_(std::move(messages)) {
        set_up();
    }
    ~io_uring_backend() override;

    outcome attach(handle& h) noexcept override;
    outcome start(io_operation& op) noexcept override;
    outcome otherwise(io_operation& op) noexcept override;
    outcome poll(io_operation& op) noexcept override;
    outcome cancel(io_operation& op) noexcept override;
    outcome reap(std::int64_t timeout, int max_items) noexcept override;
    outcome await_end(io_operation& op) noexcept override;
    void await_release(zero_copy_operation& op) noexcept override;
    void end_waits_by(native_handle watch) noexcept override;
    void wake() noexcept override;

private:
    // After so many messages in succession a connection is received from continuously.
    static constexpr std::uint8_t continuous = 4;
    // So much is received ahead of the reads of one connection.
    static constexpr unsigned most_parked = 4;

    static ring_slot& slot_of(io_operation const& op) noexcept {
        return static_cast<ring_slot&>(*slot(op));
    }

    void set_up() noexcept;
    outcome enter(unsigned wait_for, std::int64_t timeout) noexcept;
    outcome take_over() noexcept;
    void arm_wake() noexcept;
    void arm_clock() noexcept;

    io_uring_sqe* next_entry() noexcept;
    outcome issue(ring_slot& s, io_operation& op, bool by_poll = false) noexcept;
    void issue_poll(io_uring_sqe& entry, ring_slot& s, bool reading) noexcept;
    void issue_read(io_uring_sqe& entry, ring_slot& s, buffers const& b) noexcept;
    void issue_write(io_uring_sqe& entry, ring_slot& s, const_buffers const& b) noexcept;
    static void issue_send(io_uring_sqe& entry, ring_slot& s, const_buffer b) noexcept;
    void issue_receive(io_uring_sqe& entry, ring_slot& s, std::size_t most) noexcept;
    void issue_zero_copy(io_uring_sqe& entry, ring_slot& s, io_operation& op) noexcept;
    void issue_send_to(io_uring_sqe& entry, ring_slot& s, io_operation& op) noexcept;
    static void issue_receive_from(io_uring_sqe& entry, ring_slot& s, io_operation& op) noexcept;
    static bool done_by_ring(ring_slot const& s, io_operation& op) noexcept;
    static outcome end_of_read(io_operation& op, outcome moved) noexcept;
    msghdr& scattered(io_uring_sqe const& entry, void const* array, std::size_t count) noexcept;
    /// Whether the operation that waits ends only with the request.
    static bool holds_buffers(direction const& d) noexcept {
        return d.in_kernel == request::read || d.in_kernel == request::write ||
               d.in_kernel == request::zero_copy;
    }
    void cancel_request(ring_slot& s, direction& d) noexcept;
    bool cancel_entry(std::uint64_t user_data) noexcept;

    void on_completion(completion c) noexcept;
    void on_other_completion(completion c) noexcept;
    void on_failed(ring_slot& s, bool reading, outcome failure) noexcept;
    void on_zero_copy(completion c) noexcept;
    void on_received(ring_slot& s, completion c) noexcept;
    void on_last_received(ring_slot& s, completion c) noexcept;
    void deliver_message(ring_slot& s, std::byte* to, std::uint16_t id, std::size_t size) noexcept;
    void deliver_block(ring_slot& s, std::uint16_t id, std::size_t size) noexcept;
    void end_of_awaited_read(ring_slot& s, std::size_t size) noexcept;
    void deliver_received(ring_slot& s, std::uint16_t id, std::size_t size) noexcept;
    void on_receiving_ended(ring_slot& s, completion c) noexcept;
    void on_polled(ring_slot& s, bool reading, outcome polled) noexcept;
    void note_read(ring_slot& s, std::size_t moved, bool filled) noexcept;
    void go_on(ring_slot& s, bool reading, bool by_poll = false) noexcept;
    void finish(ring_slot& s, bool reading, outcome o) noexcept;
    void finish_otherwise(ring_slot& s, io_operation* op, outcome o) noexcept;
    void queue_end(io_operation& op, outcome o) noexcept;
    outcome pull(unsigned wait_for) noexcept;
    void pull_one() noexcept;
    void process_queueing() noexcept;
    outcome pull_for(io_operation& op) noexcept;

    static void copy(buffers const& to, std::byte const* bytes, std::size_t size) noexcept;
    static outcome place(io_operation& op, std::byte const* bytes, std::size_t size) noexcept;
    void park(ring_slot& s, std::uint16_t id, std::size_t begin, std::size_t end) noexcept;
    template <class Take>
    outcome take_parked(ring_slot& s, Take take) noexcept;
    outcome start_otherwise(ring_slot& s, io_operation& op) noexcept;
    void stop_receiving(ring_slot& s) noexcept;

    outcome start_on_file(io_operation& op) noexcept;
    outcome issue_on_file(io_operation& op, file_request& r) noexcept;
    void prepare_part(io_uring_sqe& entry, io_operation& op) noexcept;
    void on_file_part(file_request& r, outcome part) noexcept;
    void on_file_over(file_request& r, outcome o) noexcept;
    outcome cancel_on_file(io_operation& op) noexcept;
    void cancel_request(file_request& r) noexcept;
    void leave_file(io_operation& op) noexcept;
    void start_waiting() noexcept;
    void close_file(ring_slot& s) noexcept;
    [[nodiscard]] bool forked() const noexcept { return ::getpid() != process_; }
    template <class F>
    void for_each_file_request(F visit) noexcept {
        if (files_ != nullptr) {
            files_->for_each(visit);
        }
    }
    [[nodiscard]] std::size_t file_requests_in_use() const noexcept {
        return files_ != nullptr ? files_->in_use() : 0;
    }

    void close(ring_slot& s) noexcept;
    static void detach(handle_slot& h) noexcept;
    static result<void> quiet(handle_slot& h) noexcept;
    static std::int64_t take_received(handle_slot& h, buffers const& b) noexcept;

    static constexpr handle_slot::functions functions{&detach, &quiet, &take_received};

    ring ring_;
    receive_buffers received_;
    held_writes held_;
    int wake_;
    pid_t const process_ = ::getpid();
    native_handle clock_watch_ = no_native_handle;
    table& slots_;
    std::uint64_t driver_ = 0;  // the thread that enters the ring; 0 before any has
    int settled_ = 0;           // in this turn
    // What ends is queued and no receiver called, but one operation's end is told to who watches it.
    bool queueing_ = false;
    io_operation* watched_ = nullptr;
    outcome watched_outcome_ = 0;
    bool wake_armed_ = false;
    bool ending_ = false;
    bool moving_ = false;                   // to another ring, which is not there yet
    std::unique_ptr<message[]> messages_;   // of entries until they are submitted
    std::unique_ptr<file_requests> files_;  // once a file is registered
    file_queue files_waiting_;              // for a request
};

// The ring and its thread.

void io_uring_backend::set_up() noexcept {
    if (ring_.has_multishot_receive()) {
        received_.join(ring_);
    }
    arm_wake();
    if (clock_watch_ != no_native_handle) {
        arm_clock();
    }
}

outcome io_uring_backend::enter(unsigned wait_for, std::int64_t timeout) noexcept {
    if (std::uint64_t const here = this_thread_number(); driver_ != here) [[unlikely]] {
        outcome changed = 0;
        if (driver_ == 0) {
            changed = ring_.enable();
        } else if (ring_.exclusive()) {
            changed = take_over();
        }
        if (changed < 0) {
            return changed;
        }
        driver_ = here;
    }
    return ring_.enter(wait_for, timeout);
}

/// Another thread drives now, which a ring for one thread doesn't take: all requests move to a ring
/// that does. The old one moved bytes only while its thread entered it, so that its requests have
/// done nothing that isn't known here.
outcome io_uring_backend::take_over() noexcept {
    if (!held_.empty()) {
        return failed_with(
            std::errc::device_or_resource_busy);  // the new one would not hear of their release
    }
    // But on files the kernel works by itself, and tells only the thread that was first.
    auto const on_file = [](auto const& entry) {
        return request_of(entry.user_data) == request::file;
    };
    if (ring_.count_untaken(on_file) + ring_.count_over(on_file) != file_requests_in_use()) {
        return failed_with(std::errc::device_or_resource_busy);
    }
    ring fresh;
    if (outcome const opened = fresh.open(true); opened < 0) {
        return opened;
    }
    if (outcome const enabled = fresh.enable(); enabled < 0) {
        return enabled;
    }
    bool const queueing_before = std::exchange(queueing_, true);
    moving_ = true;
    process_queueing();
    ring_ = std::move(fresh);
    driver_ = this_thread_number();
    set_up();
    // Those that wait for a request get one only when all that have one are seen to.
    for_each_file_request([this](file_request& r) {
        bool const cancelled =
            std::exchange(r.cancelling, false) || static_cast<ring_slot&>(*slot(*r.op)).over;
        if (outcome const issued = cancelled ? canceled : issue_on_file(*r.op, r);
            issued != again) {
            on_file_over(r, issued);
        }
    });
    moving_ = false;
    slots_.for_each([this](ring_slot& s) {
        s.watched = 0;
        for (bool const reading : {true, false}) {
            bool const cancelled = std::exchange(s.side(reading), {}).cancelling || s.over;
            if (s.waiting(reading) != nullptr && cancelled) {
                queue_end(*std::exchange(s.waiting(reading), nullptr), canceled);
            } else if (s.waiting(reading) != nullptr) {
                go_on(s, reading);
            }
        }
        if (s.closed && s.in_flight == 0) {
            slots_.give_back(s);
        }
    });
    start_waiting();
    queueing_ = queueing_before;
    return 0;
}

io_uring_backend::~io_uring_backend() {
    ending_ = true;
    // A ring for one thread that is gone moves no bytes any more.
    while (io_operation* const op = files_waiting_.first()) {
        files_waiting_.erase(*op);
        leave_file(*op);
        settle_later(*op, canceled);
    }
    bool const enters = driver_ == this_thread_number() || (driver_ != 0 && !ring_.exclusive());
    if (enters && !forked()) {
        bool wake_cancelled = false;
        for (;;) {
            bool left = wake_armed_ || file_requests_in_use() != 0;
            for_each_file_request([this](file_request& r) { cancel_request(r); });
            slots_.for_each([&](ring_slot& s) {
                s.over = true;
                for (direction* const d : {&s.in, &s.out}) {
                    cancel_request(s, *d);
                    left = left || d->in_kernel != request::none;
                }
            });
            if (!left) {
                break;
            }
            wake_cancelled = wake_cancelled || cancel_entry(user_data_of(request::wake));
            pull_one();
        }
    }
    if (!forked()) {
        process_queueing();  // else they are the other process's
    }
    held_.for_each_held([](zero_copy_operation& op) { forget(op); });
    require(
        file_requests_in_use() == 0 || driver_ == 0 || enters,
        "an i/o multiplexer was destroyed with operations on files in flight, on another thread "
        "than the one that drove it");
    for_each_file_request([this](file_request& r) {
        io_operation& op = *r.op;
        files_->give_back(r);
        leave_file(op);
        settle_later(op, canceled);
    });
    slots_.for_each([this](ring_slot& s) {
        for (bool const reading : {true, false}) {
            if (io_operation* const op = std::exchange(s.waiting(reading), nullptr)) {
                settle_later(*op, canceled);
            }
        }
        s.multiplexer = nullptr;
        s.ready = s.watched = 0;
        if (s.closed) {
            slots_.give_back(s);
        }
    });
    ::close(wake_);
    slots_.retire();
}

void io_uring_backend::wake() noexcept {
    int const error = errno;
    std::uint64_t const one = 1;
    while (::write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    errno = error;
}

// Each write is reported once, so the counter need not be read while it is far from full.
void io_uring_backend::arm_wake() noexcept {
    io_uring_sqe* const entry = next_entry();
    wake_armed_ = entry != nullptr;
    if (wake_armed_) {
        io_uring_prep_poll_multishot(entry, wake_, POLLIN);
        entry->user_data = user_data_of(request::wake);
    }
}

void io_uring_backend::end_waits_by(native_handle watch) noexcept {
    clock_watch_ = watch;
    arm_clock();
}

void io_uring_backend::arm_clock() noexcept {
    if (io_uring_sqe* const entry = next_entry()) {
        io_uring_prep_poll_multishot(entry, static_cast<int>(clock_watch_), POLLIN);
        entry->user_data = user_data_of(request::clock);
    }
}

// Requests.

inline io_uring_sqe* io_uring_backend::next_entry() noexcept {
    io_uring_sqe* entry = ring_.next();
    if (entry == nullptr) [[unlikely]] {
        enter(0, 0);
        entry = ring_.next();
    }
    return entry;
}

void io_uring_backend::issue_poll(io_uring_sqe& entry, ring_slot& s, bool reading) noexcept {
    io_uring_prep_poll_add(&entry, static_cast<int>(s.native),
                           reading ? POLLIN | POLLRDHUP : POLLOUT);
    request const r = reading ? request::poll_in : request::poll_out;
    entry.user_data = s.key | user_data_of(r);
    s.side(reading).in_kernel = r;
    s.watched |= reading ? readable : writable;
}

msghdr& io_uring_backend::scattered(io_uring_sqe const& entry, void const* array,
                                    std::size_t count) noexcept {
    msghdr& header = messages_[ring_.index(entry)].header;
    header = {};
    header.msg_iov = static_cast<iovec*>(const_cast<void*>(array));
    header.msg_iovlen = std::min(count, most_buffers);
    return header;
}

constexpr unsigned size_of_one(std::size_t size) noexcept {
    return static_cast<unsigned>(std::min<std::size_t>(size, INT32_MAX));
}

constexpr auto no_offset = ~std::uint64_t{0};

void io_uring_backend::issue_read(io_uring_sqe& entry, ring_slot& s, buffers const& b) noexcept {
    int const fd = static_cast<int>(s.native);
    buffer const* const array = b.native_array();
    std::size_t const count = b.native_count();
    int const flags = s.kind == handle_kind::datagram_socket ? MSG_TRUNC : 0;
    if (s.kind == handle_kind::pipe) {
        if (count == 1) {
            io_uring_prep_read(&entry, fd, array->data(), size_of_one(array->size()), no_offset);
        } else {
            io_uring_prep_readv(&entry, fd, reinterpret_cast<iovec const*>(array),
                                static_cast<unsigned>(std::min(count, most_buffers)), no_offset);
        }
    } else if (count == 1) {
        io_uring_prep_recv(&entry, fd, array->data(), size_of_one(array->size()), flags);
    } else {
        io_uring_prep_recvmsg(&entry, fd, &scattered(entry, array, count), flags);
    }
    entry.user_data = s.key | user_data_of(request::read);
    s.in.in_kernel = request::read;
}

inline void io_uring_backend::issue_send(io_uring_sqe& entry, ring_slot& s,
                                         const_buffer b) noexcept {
    io_uring_prep_send(&entry, static_cast<int>(s.native), b.data(), size_of_one(b.size()),
                       MSG_NOSIGNAL);
    entry.user_data = s.key | user_data_of(request::write);
    s.out.in_kernel = request::write;
}

void io_uring_backend::issue_write(io_uring_sqe& entry, ring_slot& s,
                                   const_buffers const& b) noexcept {
    int const fd = static_cast<int>(s.native);
    const_buffer const* const array = b.native_array();
    std::size_t const count = b.native_count();
    if (s.kind == handle_kind::pipe) {
        if (count == 1) {
            io_uring_prep_write(&entry, fd, array->data(), size_of_one(array->size()), no_offset);
        } else {
            io_uring_prep_writev(&entry, fd, reinterpret_cast<iovec const*>(array),
                                 static_cast<unsigned>(std::min(count, most_buffers)), no_offset);
        }
        entry.rw_flags = RWF_NOSIGNAL;
    } else if (count == 1) {
        return issue_send(entry, s, *array);
    } else {
        io_uring_prep_sendmsg(&entry, fd, &scattered(entry, array, count), MSG_NOSIGNAL);
    }
    entry.user_data = s.key | user_data_of(request::write);
    s.out.in_kernel = request::write;
}

void io_uring_backend::issue_send_to(io_uring_sqe& entry, ring_slot& s, io_operation& op) noexcept {
    const_buffers const& b = write_request(op);
    msghdr& header = scattered(entry, b.native_array(), b.native_count());
    auto& to = *new (messages_[ring_.index(entry)].name) native_address(address(op));
    header.msg_name = to.get();
    header.msg_namelen = to.size();
    io_uring_prep_sendmsg(&entry, static_cast<int>(s.native), &header, MSG_NOSIGNAL);
    entry.user_data = s.key | user_data_of(request::write);
    s.out.in_kernel = request::write;
}

void io_uring_backend::issue_receive_from(io_uring_sqe& entry, ring_slot& s,
                                          io_operation& op) noexcept {
    buffers const& b = read_request(op);
    auto& r = *new (&native_address_room<receiving>(op)) receiving{};
    r.header.msg_name = r.name.get();
    r.header.msg_namelen = r.name.size();
    r.header.msg_iov = reinterpret_cast<iovec*>(const_cast<buffer*>(b.native_array()));
    r.header.msg_iovlen = b.native_count();
    io_uring_prep_recvmsg(&entry, static_cast<int>(s.native), &r.header, MSG_TRUNC);
    entry.user_data = s.key | user_data_of(request::read);
    s.in.in_kernel = request::read;
}

/// Whether the ring does the i/o; else it waits for readiness, and then the operation is tried.
bool io_uring_backend::done_by_ring(ring_slot const& s, io_operation& op) noexcept {
    auto const is_whole = [](auto const& list) {
        return list.native_count() <= most_buffers && list.trim_last() == 0;
    };
    bool const datagrams = s.kind == handle_kind::datagram_socket;
    switch (what(op)) {
    case action::read:
        return !datagrams || is_whole(read_request(op));
    case action::write:
        return !datagrams || is_whole(write_request(op));
    case action::write_zero_copy:
        return true;
    case action::read_pooled:
        return !datagrams;  // the provided buffers may be too small
    case action::receive:
        return is_whole(read_request(op));
    case action::send:
        // For a unix receiver that is full it would wait in a thread of the kernel.
        return address(op).family() != endpoint::family_type::unix_domain &&
               is_whole(write_request(op));
    case action::accept:
    case action::connect:
    case action::wait:
    case action::barrier:
        break;
    }
    return false;
}

void io_uring_backend::issue_receive(io_uring_sqe& entry, ring_slot& s, std::size_t most) noexcept {
    int const fd = static_cast<int>(s.native);
    unsigned const size = size_of_one(std::min<std::size_t>(most, receive_buffers::size));
    if (s.kind == handle_kind::pipe) {
        io_uring_prep_read(&entry, fd, nullptr, size, no_offset);
    } else if (s.messages < continuous) {
        io_uring_prep_recv(&entry, fd, nullptr, size, 0);
    } else {
        io_uring_prep_recv_multishot(&entry, fd, nullptr, 0, 0);
    }
    entry.flags |= IOSQE_BUFFER_SELECT;
    entry.buf_group = receive_buffers::group;
    entry.user_data = s.key | user_data_of(request::receive);
    s.in.in_kernel = request::receive;
    s.ready &= ~static_cast<std::uint32_t>(readable);
    s.watched |= readable;
}

void io_uring_backend::issue_zero_copy(io_uring_sqe& entry, ring_slot& s,
                                       io_operation& op) noexcept {
    const_buffer const b = *write_request(op).native_array();
    io_uring_prep_send_zc(&entry, static_cast<int>(s.native), b.data(), size_of_one(b.size()),
                          MSG_NOSIGNAL, 0);
    s.held_write = held_.take(s);
    entry.user_data = s.held_write | user_data_of(request::zero_copy);
    s.out.in_kernel = request::zero_copy;
}

/// Gives the kernel a request for an operation that waits.
/// @param by_poll  to wait for readiness only
/// @return 0, or minus the error
outcome io_uring_backend::issue(ring_slot& s, io_operation& op, bool by_poll) noexcept {
    io_uring_sqe* const entry = next_entry();
    if (entry == nullptr) [[unlikely]] {
        return failed_with(std::errc::no_buffer_space);
    }
    action const a = what(op);
    if (s.by_poll || by_poll || !done_by_ring(s, op)) {
        issue_poll(*entry, s, reads(a));
    } else if (a == action::send) {
        issue_send_to(*entry, s, op);
    } else if (a == action::receive) {
        issue_receive_from(*entry, s, op);
    } else if (a == action::write_zero_copy && !s.copies && write_request(op).native_count() == 1 &&
               held_.has_room()) {
        issue_zero_copy(*entry, s, op);
    } else if (a == action::write || a == action::write_zero_copy) {
        issue_write(*entry, s, write_request(op));
    } else if (a == action::read && (s.messages < continuous || !received_.available())) {
        issue_read(*entry, s, read_request(op));
    } else if (received_.available()) {
        issue_receive(*entry, s, read_request(op).bytes());
    } else {
        issue_poll(*entry, s, true);
    }
    return 0;
}

/// Asks the kernel to end a request early, once.
void io_uring_backend::cancel_request(ring_slot& s, direction& d) noexcept {
    if (d.in_kernel != request::none && !d.cancelling && !moving_) {
        std::uint64_t const name = d.in_kernel == request::zero_copy ? s.held_write : s.key;
        d.cancelling = cancel_entry(name | user_data_of(d.in_kernel));
    }
}

/// @return whether there was room to ask
bool io_uring_backend::cancel_entry(std::uint64_t user_data) noexcept {
    io_uring_sqe* const entry = next_entry();
    if (entry == nullptr) [[unlikely]] {
        return false;
    }
    io_uring_prep_cancel64(entry, user_data, 0);
    entry->user_data = 0;
    return true;
}

// Completions.

[[gnu::always_inline]] inline void io_uring_backend::on_completion(completion c) noexcept {
    request const r = request_of(c.user_data);
    if (r == request::write && c.result >= 0) [[likely]] {
        ring_slot& s = slots_.at(c.user_data);
        s.out = {};
        finish(s, false, c.result);
    } else if (r == request::receive) [[likely]] {
        on_received(slots_.at(c.user_data), c);
    } else {
        on_other_completion(c);
    }
}

void io_uring_backend::on_other_completion(completion c) noexcept {
    switch (request_of(c.user_data)) {
    case request::none:  // of a cancellation; what matters is how its target ends
    case request::receive:
        break;
    case request::wake:
        if (!c.more()) {
            wake_armed_ = false;
            if (!ending_ && !moving_) {
                arm_wake();
            }
        }
        break;
    case request::clock:
        // That it came has ended the wait.
        if (!c.more() && !ending_ && !moving_) {
            arm_clock();
        }
        break;
    case request::write:
        on_failed(slots_.at(c.user_data), false, c.result);
        break;
    case request::zero_copy:
        on_zero_copy(c);
        break;
    case request::read: {
        ring_slot& s = slots_.at(c.user_data);
        if (c.result < 0) {
            on_failed(s, true, c.result);
            break;
        }
        s.in = {};
        auto const moved = static_cast<std::size_t>(c.result);
        note_read(s, moved, moved == read_request(*s.reader).bytes());
        finish(s, true, end_of_read(*s.reader, c.result));
        break;
    }
    case request::file:
        on_file_part(files_->at(c.user_data), c.result);
        break;
    case request::poll_in:
        on_polled(slots_.at(c.user_data), true, c.result);
        break;
    case request::poll_out:
        on_polled(slots_.at(c.user_data), false, c.result);
        break;
    }
}

/// @param moved  by the kernel; of a datagram its size, which may be more than there was room for
outcome io_uring_backend::end_of_read(io_operation& op, outcome moved) noexcept {
    if (what(op) == action::receive) {
        auto& r = native_address_room<receiving>(op);
        *r.name.size_for_result() = r.header.msg_namelen;
        endpoint from;
        if (outcome const known = r.name.to(from); known < 0) {
            return known;
        }
        address(op) = from;
    }
    return static_cast<std::size_t>(moved) > read_request(op).bytes() ? -EMSGSIZE : moved;
}

/// A read into, or a write from, the operation's own buffers did nothing.
void io_uring_backend::on_failed(ring_slot& s, bool reading, outcome failure) noexcept {
    bool const cancelled = std::exchange(s.side(reading), {}).cancelling || s.over;
    switch (failure) {
    case -EOPNOTSUPP:  // RWF_NOSIGNAL
        if (reading || s.kind != handle_kind::pipe) {
            return finish(s, reading, failure);
        }
        [[fallthrough]];
    case -EAGAIN:
        s.by_poll = true;
        s.sends = false;
        break;
    case -ECANCELED:  // where unasked, the thread that had submitted it has ended
    case -EINTR:
        break;
    default:
        return finish(s, reading, failure);
    }
    if (cancelled) {
        finish(s, reading, canceled);
    } else {
        go_on(s, reading);
    }
}

/// Its result, or that the kernel has let go of the buffer, which is the last.
void io_uring_backend::on_zero_copy(completion c) noexcept {
    auto const number = static_cast<std::uint16_t>(c.user_data);
    held_writes::write& w = held_[number];
    ring_slot* const s = std::exchange(w.slot, nullptr);
    zero_copy_operation* held = std::exchange(w.operation, nullptr);
    if (c.more()) {
        if (c.result >= 0) {  // else nothing was sent
            held = w.operation = static_cast<zero_copy_operation*>(s->writer);
            hold(*held);
        }
    } else {
        held_.give_back(number);
        if (held != nullptr) {
            release(*held);
        }
    }
    if (s == nullptr) {
        return;
    }
    // The last two where no more memory may be locked.
    if (c.result == -EOPNOTSUPP || c.result == -EINVAL || c.result == -ENOMEM ||
        c.result == -ENOBUFS) {
        s->copies = true;
        c.result = -EINTR;  // again, then
    }
    if (c.result < 0) {
        return on_failed(*s, false, c.result);
    }
    s->out = {};
    finish(*s, false, c.result);
}

/// Learns from a read by the ring how the next one goes best.
void io_uring_backend::note_read(ring_slot& s, std::size_t moved, bool filled) noexcept {
    // What is more than messages goes better into the reader's own, larger buffers.
    bool const message =
        moved < receive_buffers::size && moved > 0 && s.kind == handle_kind::stream_socket;
    s.messages = message ? std::min<std::uint8_t>(s.messages + 1, continuous) : 0;
    // More is likely there: the next read is tried directly.
    if ((filled || moved == receive_buffers::size) && s.in.in_kernel == request::none) {
        s.ready |= readable;
        // A pipe that never blocks is read by a quicker call; the ring refuses to wait for bytes of such, but tells of
        // its readiness.
        if (s.kind == handle_kind::pipe && os().set_blocking(s.native, false) >= 0) {
            s.kind = handle_kind::polled_pipe;
            s.by_poll = true;
        }
    }
}

// Only calls at the end, so that this saves no register for any of them.
inline void io_uring_backend::on_received(ring_slot& s, completion c) noexcept {
    auto const size = static_cast<std::size_t>(c.result);
    if (c.result <= 0 || s.over) [[unlikely]] {
        return on_receiving_ended(s, c);
    }
    if (!c.more() || size == receive_buffers::size) [[unlikely]] {
        return on_last_received(s, c);
    }
    std::uint16_t const id = c.buffer_id();
    io_operation* const op = s.reader;
    if (op == nullptr) [[unlikely]] {
        return park(s, id, 0, size);
    }
    if (buffers const& to = read_request(*op); !queueing_ && size <= to.bytes()) [[likely]] {
        if (awaited_plainly(*op, action::read)) {
            return deliver_message(s, to.single().data(), id, size);
        }
        if (awaited_plainly(*op, action::read_pooled)) {
            return deliver_block(s, id, size);
        }
    }
    deliver_received(s, id, size);
}

/// The last that this request brings, or as much as a buffer holds: no message.
[[gnu::noinline]] void io_uring_backend::on_last_received(ring_slot& s, completion c) noexcept {
    auto const size = static_cast<std::size_t>(c.result);
    if (!c.more()) {
        s.in = {};
        s.watched &= ~std::uint32_t{readable};
    }
    note_read(s, size, s.reader != nullptr && size == read_request(*s.reader).bytes());
    if (s.messages == 0) {
        cancel_request(s, s.in);
    }
    if (s.reader != nullptr) {
        deliver_received(s, c.buffer_id(), size);
    } else {
        park(s, c.buffer_id(), 0, size);
    }
}

/// To a coroutine's read that takes all of it.
[[gnu::noinline]] void io_uring_backend::deliver_message(ring_slot& s, std::byte* to,
                                                         std::uint16_t id,
                                                         std::size_t size) noexcept {
    std::memcpy(to, received_.data(id), size);
    received_.recycle(id);
    end_of_awaited_read(s, size);
}

/// The same to a pooled read.
[[gnu::noinline]] void io_uring_backend::deliver_block(ring_slot& s, std::uint16_t id,
                                                       std::size_t size) noexcept {
    void* const block = pooled_allocate(size);
    if (block == nullptr) [[unlikely]] {
        return deliver_received(s, id, size);
    }
    std::memcpy(block, received_.data(id), size);
    set_block(*s.reader, buffer(static_cast<std::byte*>(block), size));
    received_.recycle(id);
    end_of_awaited_read(s, size);
}

inline void io_uring_backend::end_of_awaited_read(ring_slot& s, std::size_t size) noexcept {
    io_operation& op = *std::exchange(s.reader, nullptr);
    ++settled_;
    settle_awaited(op, static_cast<outcome>(size));
}

[[gnu::noinline]] void io_uring_backend::deliver_received(ring_slot& s, std::uint16_t id,
                                                          std::size_t size) noexcept {
    outcome const placed = place(*s.reader, received_.data(id), size);
    if (placed == static_cast<outcome>(size)) {
        received_.recycle(id);
    } else {
        park(s, id, placed < 0 ? 0 : static_cast<std::size_t>(placed), size);
    }
    finish(s, true, placed);
}

/// The end of the stream, an error, or the end of the receiving alone.
[[gnu::noinline]] void io_uring_backend::on_receiving_ended(ring_slot& s, completion c) noexcept {
    if ((c.flags & IORING_CQE_F_BUFFER) != 0) {
        received_.recycle(c.buffer_id());
    }
    if (c.more()) {
        return;
    }
    s.in = {};
    s.watched &= ~std::uint32_t{readable};
    if (s.over) {
        return finish(s, true, canceled);
    }
    bool ready_first = false;
    switch (c.result) {
    case -EAGAIN:
    case -EINVAL:  // not from this descriptor; a true error shows when the read is tried
        s.by_poll = true;
        s.sends = false;
        break;
    case -ENOBUFS:
        // The others hold all the buffers: this one reads into its own for a while.
        s.messages = 0;
        ready_first = s.reader != nullptr && what(*s.reader) == action::read_pooled;
        break;
    case -ECANCELED:
    case -EINTR:
        break;
    default:
        if (s.reader != nullptr) {
            return finish(s, true, c.result);
        }
        s.ready &= ~std::uint32_t{readable};
        s.parked_end = c.result;
        return;
    }
    if (s.reader != nullptr) {
        go_on(s, true, ready_first);
    }
}

void io_uring_backend::on_polled(ring_slot& s, bool reading, outcome polled) noexcept {
    std::uint32_t const ready = reading ? readable : writable;
    bool const cancelled = std::exchange(s.side(reading), {}).cancelling || s.over;
    s.watched &= ~ready;
    io_operation* const op = s.waiting(reading);
    if (cancelled || op == nullptr) {
        return finish(s, reading, canceled);
    }
    if (polled < 0 && polled != -ECANCELED && polled != -EINTR) {
        return finish(s, reading, polled);
    }
    // Writes of others go to the ring first.
    s.ready |= s.by_poll || what(*op) == action::accept ? ready : 0;
    outcome const done = try_now(*op);
    if (done == again) {
        go_on(s, reading);
    } else {
        finish(s, reading, done);
    }
}

/// The operation that waits needs another request.
void io_uring_backend::go_on(ring_slot& s, bool reading, bool by_poll) noexcept {
    if (moving_) {
        return;
    }
    if (outcome const issued = issue(s, *s.waiting(reading), by_poll); issued < 0) {
        finish(s, reading, issued);
    }
}

/// The operation that waits is over, if there is one.
inline void io_uring_backend::finish(ring_slot& s, bool reading, outcome o) noexcept {
    io_operation* const op = std::exchange(s.waiting(reading), nullptr);
    if (op == nullptr || s.over || queueing_) [[unlikely]] {
        return finish_otherwise(s, op, o);
    }
    ++settled_;
    settle(*op, o);
}

void io_uring_backend::finish_otherwise(ring_slot& s, io_operation* op, outcome o) noexcept {
    if (s.closed && s.in.in_kernel == request::none && s.out.in_kernel == request::none &&
        !moving_) {
        slots_.give_back(s);
    }
    if (op == nullptr) {
        return;
    }
    if (queueing_) {
        return queue_end(*op, o);
    }
    ++settled_;
    settle(*op, o);
}

void io_uring_backend::queue_end(io_operation& op, outcome o) noexcept {
    if (&op == watched_) {
        watched_ = nullptr;
        watched_outcome_ = o;
    } else {
        settle_later(op, o);
    }
}

void io_uring_backend::process_queueing() noexcept {
    bool const before = std::exchange(queueing_, true);
    while (!ring_.empty()) {
        on_completion(ring_.pop());
    }
    queueing_ = before;
}

/// Lets the kernel do its part and queues what ends.
outcome io_uring_backend::pull(unsigned wait_for) noexcept {
    wait_for = ring_.empty() ? wait_for : 0;
    bool const enters = wait_for != 0 || ring_.must_enter();
    outcome const entered = enters ? enter(wait_for, forever) : 0;
    process_queueing();
    return entered;
}

/// Lets something end that somebody waits for here.
void io_uring_backend::pull_one() noexcept {
    require(pull(1) >= 0,
            "an i/o operation can't be ended by a thread that its ring refuses: the one that drove "
            "the multiplexer before has operations in the kernel");
}

/// @return the outcome of an operation, if it ends thereby, else minus EAGAIN
outcome io_uring_backend::pull_for(io_operation& op) noexcept {
    watched_ = &op;
    watched_outcome_ = again;
    pull(0);
    watched_ = nullptr;
    return watched_outcome_;
}

// Received bytes.

inline void io_uring_backend::copy(buffers const& to, std::byte const* bytes,
                                   std::size_t size) noexcept {
    if (to.native_count() == 1) [[likely]] {
        std::memcpy(to.native_array()->data(), bytes, size);
        return;
    }
    for (buffer const b : to.first(size)) {
        std::memcpy(b.data(), bytes, b.size());
        bytes += b.size();
    }
}

/// Gives a read bytes that are here. @return how many it took, or minus the error
inline outcome io_uring_backend::place(io_operation& op, std::byte const* bytes,
                                       std::size_t size) noexcept {
    buffers const& to = read_request(op);
    size = std::min(size, to.bytes());
    if (what(op) == action::read_pooled) {
        // Of the size of what is here, which mostly is less than what was asked for.
        auto block = pooled_buffer::with_capacity(size);
        if (block.capacity() != size) {
            return failed_with(std::errc::not_enough_memory);
        }
        std::memcpy(block.data(), bytes, size);
        set_block(op, block.room());
        (void)block.release();
    } else {
        copy(to, bytes, size);
    }
    return static_cast<outcome>(size);
}

/// Keeps what nobody reads yet, and a limit to that.
void io_uring_backend::park(ring_slot& s, std::uint16_t id, std::size_t begin,
                            std::size_t end) noexcept {
    received_.park(s.parked, id, begin, end);
    s.ready &= ~std::uint32_t{readable};
    s.watched &= ~std::uint32_t{readable};
    if (s.parked.count >= most_parked) {
        cancel_request(s, s.in);
    }
}

/// @param take  gets bytes and their number. @return how many it took, or minus an error
template <class Take>
outcome io_uring_backend::take_parked(ring_slot& s, Take take) noexcept {
    if (s.parked.count == 0) {
        return std::exchange(s.parked_end, ring_slot::nothing);
    }
    auto const bytes = received_.front(s.parked);
    outcome const taken = take(bytes.data(), bytes.size());
    if (taken > 0) {
        received_.drop_front(s.parked, static_cast<std::size_t>(taken));
        if (!s.has_parked() && s.in.in_kernel == request::receive) {
            s.watched |= readable;
        }
    }
    return taken;
}

/// Afterwards nothing is received ahead of reads: all that came is parked.
void io_uring_backend::stop_receiving(ring_slot& s) noexcept {
    while (s.in.in_kernel == request::receive) {
        cancel_request(s, s.in);
        pull_one();
    }
    s.messages = 0;
}

// Operations.

outcome io_uring_backend::attach(handle& h) noexcept {
    ring_slot* const s = slots_.take();
    if (s == nullptr) {
        return failed_with(std::errc::not_enough_memory);
    }
    s->table = &functions;
    if (is_seekable(h.kind())) {
        files_ = files_ != nullptr ? std::move(files_) : file_requests::make();
        if (files_ == nullptr) {
            slots_.give_back(*s);
            return failed_with(std::errc::not_enough_memory);
        }
        set_file(*s, h);
        return 0;
    }
    s->native = native(h);
    s->kind = h.kind();
    s->key = table::key(*s);
    s->ready = s->kind == handle_kind::datagram_socket ? divided : 0u;
    s->sends = s->kind == handle_kind::stream_socket;
    // Of these a read of nothing may or may not be the end, which only the seam's read tells.
    s->by_poll = !is_socket(s->kind) && s->kind != handle_kind::pipe;
    set_slot(h, *s);
    return 0;
}

// One buffer into a socket first: what servers do.
outcome io_uring_backend::start(io_operation& op) noexcept {
    ring_slot& s = slot_of(op);
    if (starts_plainly(op, action::write) && s.sends && s.out.in_kernel == request::none)
        [[likely]] {
        if (io_uring_sqe* const entry = ring_.next()) [[likely]] {
            issue_send(*entry, s, write_request(op).single());
            s.writer = &op;
            return again;
        }
    }
    return start_otherwise(s, op);
}

outcome io_uring_backend::start_otherwise(ring_slot& s, io_operation& op) noexcept {
    if (is_seekable(s.kind)) {
        return start_on_file(op);
    }
    bool const reading = reads(what(op));
    if (reading && s.has_parked()) {
        return take_parked(
            s, [&](std::byte const* bytes, std::size_t size) { return place(op, bytes, size); });
    }
    direction& d = s.side(reading);
    bool const waits = !never_waits(op);
    // What isn't to wait is tried here, unless the kernel may receive at the same time: see `cancel`. So is what else
    // would only wait to be writable.
    if ((!waits && d.in_kernel != request::receive) || (!reading && !done_by_ring(s, op)))
        [[unlikely]] {
        s.ready |= reading ? readable : writable;
        outcome const done = try_now(op);
        s.ready &= ~(reading ? std::uint32_t{0} : std::uint32_t{writable});
        if (done != again || !waits) {
            return done;
        }
    }
    if (d.in_kernel == request::none) {
        if (outcome const issued = issue(s, op); issued < 0) [[unlikely]] {
            return issued;
        }
    }
    s.waiting(reading) =
        &op;  // not before: to make room, the ring may have to start anew all that waits
    return again;
}

outcome io_uring_backend::otherwise(io_operation& op) noexcept {
    ring_slot& s = slot_of(op);
    outcome const done = attempt(s.native, s.kind, op, s.connecting);
    if (done == again) {
        s.ready &= ~std::uint32_t{reads(what(op)) ? readable : writable};
    }
    return done;
}

outcome io_uring_backend::cancel(io_operation& op) noexcept {
    ring_slot& s = slot_of(op);
    if (is_seekable(s.kind)) {
        return cancel_on_file(op);
    }
    bool const reading = reads(what(op));
    io_operation*& waiting = s.waiting(reading);
    if (waiting != &op) {
        return canceled;
    }
    direction& d = s.side(reading);
    if (d.in_kernel == request::receive && never_waits(op)) {
        if (outcome const done = pull_for(op); done != again) {
            return done;
        }
    }
    // Also of what took the place of a receive that has just ended.
    if (holds_buffers(d)) {
        cancel_request(s, d);
        return again;
    }
    waiting = nullptr;
    return canceled;
}

outcome io_uring_backend::poll(io_operation& op) noexcept {
    ring_slot& s = slot_of(op);
    bool const reading = reads(what(op));
    request const r = s.side(reading).in_kernel;
    if (r != request::poll_in && r != request::poll_out) {
        return pull_for(op);
    }
    outcome const done = try_now(op);
    if (done != again) {
        s.waiting(reading) = nullptr;
    }
    return done;
}

outcome io_uring_backend::await_end(io_operation& op) noexcept {
    ring_slot& s = slot_of(op);
    if (forked()) {
        return canceled;
    }
    watched_ = &op;
    while (watched_ != nullptr) {
        if (is_seekable(s.kind)) {
            (void)cancel_on_file(op);
        } else {
            cancel_request(s, s.side(reads(what(op))));
        }
        pull_one();
    }
    return watched_outcome_;
}

void io_uring_backend::await_release(zero_copy_operation& op) noexcept {
    while (op.held()) {
        pull_one();
    }
}

outcome io_uring_backend::reap(std::int64_t timeout, int max_items) noexcept {
    if (!wake_armed_) [[unlikely]] {
        arm_wake();
    }
    if (!ring_.empty()) {
        timeout = 0;
    }
    if (timeout != 0 || ring_.must_enter() || driver_ != this_thread_number()) {
        if (outcome const entered = enter(timeout != 0 ? 1 : 0, timeout); entered < 0) {
            return entered;
        }
    }
    // What ends while receivers run waits for the next turn.
    unsigned const last = ring_.tail();
    int const settled_around = std::exchange(settled_, 0);
    while (static_cast<int>(last - ring_.head()) > 0 && settled_ != max_items) {
        on_completion(ring_.pop());
    }
    return std::exchange(settled_, settled_around);
}

// Files.

outcome io_uring_backend::start_on_file(io_operation& op) noexcept {
    outcome const begun = begin_on_file(op);
    if (begun != again || never_waits(op)) {
        return begun;
    }
    if (driver_ != this_thread_number() && driver_ != 0 && ring_.exclusive()) [[unlikely]] {
        // Before there is a request that couldn't move.
        if (outcome const entered = enter(0, 0); entered < 0) {
            return entered != again ? entered : failed_with(std::errc::no_buffer_space);
        }
    }
    if (files_->full()) {
        stage_of(op) = stage::queued;
        files_waiting_.push(op);
    } else {
        file_request& r = files_->take(op);
        if (outcome const issued = issue_on_file(op, r); issued != again) [[unlikely]] {
            files_->give_back(r);
            return issued;
        }
        // A device that is busy loses time while requests gather; what is idle gets the next with the wait for it.
        if (goes_to_device(op) && files_->in_use() > 1 && driver_ == this_thread_number()) {
            enter(0, 0);
        }
    }
    ++slot(op)->in_flight;
    return again;
}

/// @return minus EAGAIN: it will be told, or another error
outcome io_uring_backend::issue_on_file(io_operation& op, file_request& r) noexcept {
    io_uring_sqe* const entry = next_entry();
    if (entry == nullptr) [[unlikely]] {
        return failed_with(std::errc::no_buffer_space);
    }
    prepare_part(*entry, op);
    entry->user_data = r.user_data();
    id_of(op) = r.number;
    stage_of(op) = stage::running;
    return again;
}

void io_uring_backend::prepare_part(io_uring_sqe& entry, io_operation& op) noexcept {
    // As the kernel would cut it, so that direct i/o stays aligned.
    constexpr std::size_t most = INT32_MAX & ~0xfff;
    int const fd = static_cast<int>(slot(op)->native);
    auto const moved = static_cast<std::size_t>(outcome_of(op));
    auto const prepare = [&](auto const& list, auto one, auto several) {
        rest_of const part(list, moved);
        auto const at = offset_of(op) == no_offset ? no_offset : offset_of(op) + moved;
        if (part.count() == 1) {
            one(&entry, fd, part.array()->data(),
                static_cast<unsigned>(std::min(part.array()->size(), most)), at);
        } else {
            several(&entry, fd, reinterpret_cast<iovec const*>(part.array()),
                    static_cast<unsigned>(part.count()), at);
        }
    };
    if (what(op) == action::read) {
        prepare(read_request(op), io_uring_prep_read, io_uring_prep_readv);
    } else if (what(op) == action::write) {
        prepare(write_request(op), io_uring_prep_write, io_uring_prep_writev);
    } else if (kind_of_barrier(op) != barrier_kind::nowait_data_only) {
        bool const data = kind_of_barrier(op) == barrier_kind::wait_data_only;
        io_uring_prep_fsync(&entry, fd, data ? IORING_FSYNC_DATASYNC : 0u);
    } else {
        std::size_t const size = write_request(op).bytes();
        bool const all = offset_of(op) == no_offset || size > UINT32_MAX;
        io_uring_prep_sync_file_range(&entry, fd, all ? 0 : static_cast<unsigned>(size),
                                      offset_of(op) == no_offset ? 0 : offset_of(op),
                                      SYNC_FILE_RANGE_WRITE);
    }
}

void io_uring_backend::on_file_part(file_request& r, outcome part) noexcept {
    io_operation& op = *r.op;
    bool const cancelled = std::exchange(r.cancelling, false) || slot_of(op).over;
    if (part == -EAGAIN && !cancelled) {
        part = do_part(op);  // what the ring can't wait for
    }
    bool const undone = part == -EINTR || part == -ECANCELED || part == -EAGAIN;
    outcome over = undone && !cancelled ? again : add_part(op, undone ? canceled : part);
    if (over == again && cancelled) {
        over = add_part(op, canceled);
    }
    if (over == again && moving_) {
        // Begins anew on the other ring.
        files_->give_back(r);
        stage_of(op) = stage::queued;
        files_waiting_.push(op);
        return;
    }
    if (over == again) {
        outcome const issued = issue_on_file(op, r);
        over = issued == again ? again : add_part(op, issued);
    }
    if (over != again) {
        on_file_over(r, over);
    }
}

void io_uring_backend::on_file_over(file_request& r, outcome o) noexcept {
    io_operation& op = *r.op;
    files_->give_back(r);
    leave_file(op);
    start_waiting();
    if (queueing_) {
        return queue_end(op, o);
    }
    ++settled_;
    settle(op, o);
}

/// Operations that wait for a request, while there are any.
void io_uring_backend::start_waiting() noexcept {
    while (!files_waiting_.empty() && !files_->full() && !moving_) {
        io_operation& op = *files_waiting_.first();
        files_waiting_.erase(op);
        file_request& r = files_->take(op);
        if (outcome const issued = issue_on_file(op, r); issued != again) [[unlikely]] {
            files_->give_back(r);
            leave_file(op);
            settle_later(op, issued);
        }
    }
}

/// It is no longer in flight.
void io_uring_backend::leave_file(io_operation& op) noexcept {
    ring_slot& s = slot_of(op);
    stage_of(op) = stage::none;
    if (--s.in_flight == 0 && s.closed && !moving_) {
        slots_.give_back(s);
    }
}

outcome io_uring_backend::cancel_on_file(io_operation& op) noexcept {
    switch (stage_of(op)) {
    case stage::queued:
        files_waiting_.erase(op);
        leave_file(op);
        break;
    case stage::running:
        cancel_request(files_->at(id_of(op)));
        return again;
    case stage::none:
    case stage::over:
        break;
    }
    return canceled;
}

void io_uring_backend::cancel_request(file_request& r) noexcept {
    if (!r.cancelling && !moving_) {
        r.cancelling = cancel_entry(r.user_data());
    }
}

// Handles.

void io_uring_backend::close(ring_slot& s) noexcept {
    bool const busy = s.in.in_kernel != request::none || s.out.in_kernel != request::none;
    if (busy && forked()) {
        // What the kernel has, and the ring, are the other process's.
        s.in = s.out = {};
        for (bool const reading : {true, false}) {
            if (io_operation* const op = std::exchange(s.waiting(reading), nullptr)) {
                settle_later(*op, canceled);
            }
        }
    }
    if (s.in_flight != 0) {
        check_driver();
        close_file(s);
    }
    if (s.reader == nullptr && s.writer == nullptr && s.in.in_kernel == request::none &&
        s.out.in_kernel == request::none && s.in_flight == 0) {
        received_.drop_all(s.parked);
        return slots_.give_back(s);
    }
    if (s.reader != nullptr || s.writer != nullptr) {
        check_driver();
    }
    for (bool const reading : {true, false}) {
        direction& d = s.side(reading);
        if (io_operation* const op =
                holds_buffers(d) ? nullptr : std::exchange(s.waiting(reading), nullptr)) {
            settle_later(*op, canceled);
        }
        cancel_request(s, d);
    }
    received_.drop_all(s.parked);
    s.closed = s.over = true;
    // A request keeps the file open, so they end before the native handle is closed.
    enter(0, 0);
    ring_.disown(static_cast<int>(s.native));
}

void io_uring_backend::close_file(ring_slot& s) noexcept {
    for (io_operation* op = files_waiting_.first(); op != nullptr;) {
        io_operation& waiting = *std::exchange(op, file_queue::after(*op));
        if (slot(waiting) == &s) {
            files_waiting_.erase(waiting);
            leave_file(waiting);
            settle_later(waiting, canceled);
        }
    }
    for_each_file_request([&](file_request& r) {
        if (slot(*r.op) == &s) {
            cancel_request(r);
        }
    });
}

void io_uring_backend::detach(handle_slot& h) noexcept {
    auto& s = static_cast<ring_slot&>(h);
    visiting const here(s.multiplexer);
    if (s.multiplexer != nullptr) {
        static_cast<io_uring_backend&>(backend_of(*s.multiplexer)).close(s);
    } else {
        table::of(s).give_back(s);
    }
}

result<void> io_uring_backend::quiet(handle_slot& h) noexcept {
    auto& s = static_cast<ring_slot&>(h);
    visiting const here(s.multiplexer);
    if (s.reader != nullptr || s.writer != nullptr || s.in_flight != 0) {
        return make_error_code(error::busy);
    }
    if (s.multiplexer != nullptr) {
        static_cast<io_uring_backend&>(backend_of(*s.multiplexer)).stop_receiving(s);
    }
    if (s.parked.count != 0) {
        return make_error_code(error::parked_bytes);
    }
    return {};
}

std::int64_t io_uring_backend::take_received(handle_slot& h, buffers const& b) noexcept {
    auto& s = static_cast<ring_slot&>(h);
    if (s.multiplexer == nullptr) {
        return ring_slot::nothing;
    }
    visiting const here(s.multiplexer);
    auto& self = static_cast<io_uring_backend&>(backend_of(*s.multiplexer));
    self.stop_receiving(s);
    return self.take_parked(s, [&](std::byte const* bytes, std::size_t size) {
        size = std::min(size, b.bytes());
        copy(b, bytes, size);
        return static_cast<outcome>(size);
    });
}

}  // namespace

result<std::unique_ptr<io_backend>> make_io_uring_backend(io_multiplexer& owner,
                                                          bool any_thread) noexcept {
    ring r;
    if (outcome const opened = r.open(any_thread); opened < 0) {
        return error_of(opened);
    }
    int const wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) {
        return error_of(-errno);
    }
    auto* const slots = slot_table<ring_slot>::make();
    std::unique_ptr<message[]> messages(new (std::nothrow) message[ring::submission_entries]);
    std::unique_ptr<io_backend> made;
    if (slots != nullptr && messages != nullptr) {
        made.reset(new (std::nothrow)
                       io_uring_backend(owner, std::move(r), wake, *slots, std::move(messages)));
    }
    if (made == nullptr) {
        if (slots != nullptr) {
            slots->retire();
        }
        ::close(wake);
        return std::make_error_code(std::errc::not_enough_memory);
    }
    return made;
}

}  // namespace plumb::platform
