// SPDX-License-Identifier: Apache-2.0
#include "platform/posix/native_seam.hpp"

#include <plumb/base/buffer.hpp>
#include <plumb/exec/pooled_memory.hpp>

#include "platform/posix/native_call.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace plumb::platform {

static_assert(sizeof(buffer) == sizeof(iovec) && alignof(buffer) == alignof(iovec));
static_assert(sizeof(const_buffer) == sizeof(iovec) && alignof(const_buffer) == alignof(iovec));
static_assert(most_buffers <= IOV_MAX);
static_assert(offsetof(iovec, iov_base) == 0 && offsetof(iovec, iov_len) == sizeof(void*));

namespace {

std::int64_t now(clockid_t clock) noexcept {
    timespec t;
    ::clock_gettime(clock, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::int64_t steady_now() noexcept { return now(CLOCK_MONOTONIC); }
std::int64_t system_now() noexcept { return now(CLOCK_REALTIME); }

outcome close(native_handle h) noexcept {
    // Not retried: the descriptor is gone whatever close says.
    auto const closed = checked(::close(descriptor(h)));
    return closed == -EINTR ? 0 : closed;
}

outcome open_pipe(native_handle (&ends)[2]) noexcept {
    int d[2];
    auto const made = checked(::pipe2(d, O_CLOEXEC));
    if (made >= 0) {
        ends[0] = d[0];
        ends[1] = d[1];
    }
    return made;
}

outcome open_socket_pair(native_handle (&ends)[2]) noexcept {
    int d[2];
    auto const made = checked(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, d));
    if (made >= 0) {
        ends[0] = d[0];
        ends[1] = d[1];
    }
    return made;
}

int domain_of(endpoint::family_type f) noexcept {
    switch (f) {
    case endpoint::family_type::ipv4:
        return AF_INET;
    case endpoint::family_type::ipv6:
        return AF_INET6;
    case endpoint::family_type::unix_domain:
        break;
    }
    return AF_UNIX;
}

outcome open_socket(handle_kind kind, endpoint::family_type f) noexcept {
    // Non-blocking for accept and connect, which know no flag of their own.
    int const type =
        kind == handle_kind::datagram_socket ? SOCK_DGRAM : SOCK_STREAM | SOCK_NONBLOCK;
    return checked(::socket(domain_of(f), type | SOCK_CLOEXEC, 0));
}

outcome bind(native_handle h, endpoint const& e) noexcept {
    native_address const a(e);
    return checked(::bind(descriptor(h), a.get(), a.size()));
}

outcome listen(native_handle h, int backlog) noexcept {
    return checked(::listen(descriptor(h), backlog));
}

/// Whether it is ready now, for one of `events`.
bool is_ready(native_handle h, short events) noexcept {
    pollfd p{descriptor(h), events, 0};
    return ::poll(&p, 1, 0) == 1;
}

outcome accept(native_handle h) noexcept {
    return retried([&] { return ::accept4(descriptor(h), nullptr, nullptr, SOCK_CLOEXEC); });
}

outcome divides_stream(native_handle h) noexcept {
    int domain = 0;
    socklen_t size = sizeof(domain);
    auto const known = checked(::getsockopt(descriptor(h), SOL_SOCKET, SO_DOMAIN, &domain, &size));
    return known < 0 ? known : outcome{domain == AF_UNIX};
}

outcome set_blocking(native_handle h, bool blocks) noexcept {
    int const flags = ::fcntl(descriptor(h), F_GETFL);
    return checked(
        ::fcntl(descriptor(h), F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK));
}

outcome is_blocking(native_handle h) noexcept {
    auto const flags = checked(::fcntl(descriptor(h), F_GETFL));
    return flags < 0 ? flags : outcome{(flags & O_NONBLOCK) == 0};
}

// A connected socket blocks again: its reads and writes name MSG_DONTWAIT, and a ring refuses to wait for others.
outcome make_blocking(native_handle h, outcome connected) noexcept {
    if (connected >= 0) {
        (void)set_blocking(h, true);
    }
    return connected;
}

bool is_stream(native_handle h) noexcept {
    int type = 0;
    socklen_t size = sizeof(type);
    return ::getsockopt(descriptor(h), SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_STREAM;
}

outcome connect(native_handle h, endpoint const& e) noexcept {
    native_address const a(e);
    auto const begun = checked(::connect(descriptor(h), a.get(), a.size()));
    switch (begun) {
    case -EINTR:  // it goes on in the background
        return -EINPROGRESS;
    case -EAGAIN:  // the backlog of a unix listener is full, and nothing tells when it is not
        return -ENOBUFS;
    default:
        return begun == 0 && is_stream(h) ? make_blocking(h, begun) : begun;
    }
}

outcome connect_outcome(native_handle h) noexcept {
    if (!is_ready(h, POLLOUT)) {
        return -EAGAIN;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    if (auto const got = checked(::getsockopt(descriptor(h), SOL_SOCKET, SO_ERROR, &error, &size));
        got < 0) {
        return got;
    }
    return make_blocking(h, -error);
}

outcome shutdown_write(native_handle h) noexcept {
    return checked(::shutdown(descriptor(h), SHUT_WR));
}

bool is_v6(native_handle h) noexcept {
    int domain = 0;
    socklen_t size = sizeof(domain);
    return ::getsockopt(descriptor(h), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           domain == AF_INET6;
}

outcome set_option(native_handle h, socket_option option, int value) noexcept {
    auto const set = [&](int level, int name, auto const& v) {
        return checked(::setsockopt(descriptor(h), level, name, &v, sizeof(v)));
    };
    switch (option) {
    case socket_option::no_delay:
        return set(IPPROTO_TCP, TCP_NODELAY, value);
    case socket_option::reuse_address:
        return set(SOL_SOCKET, SO_REUSEADDR, value);
    case socket_option::reuse_port:
        return set(SOL_SOCKET, SO_REUSEPORT, value);
    case socket_option::send_buffer:
        return set(SOL_SOCKET, SO_SNDBUF, value);
    case socket_option::receive_buffer:
        return set(SOL_SOCKET, SO_RCVBUF, value);
    case socket_option::linger:
        return set(SOL_SOCKET, SO_LINGER, ::linger{1, value});
    case socket_option::broadcast:
        return set(SOL_SOCKET, SO_BROADCAST, value);
    case socket_option::multicast_interface:
        return is_v6(h) ? set(IPPROTO_IPV6, IPV6_MULTICAST_IF, value)
                        : set(IPPROTO_IP, IP_MULTICAST_IF, ip_mreqn{{}, {}, value});
    }
    return -EINVAL;
}

outcome set_membership(native_handle h, endpoint const& group, std::uint32_t network_interface,
                       bool member) noexcept {
    auto const set = [&](int level, int name, auto const& v) {
        return checked(::setsockopt(descriptor(h), level, name, &v, sizeof(v)));
    };
    auto const bytes = group.address_bytes();
    switch (group.family()) {
    case endpoint::family_type::ipv4: {
        ip_mreqn m{};
        std::memcpy(&m.imr_multiaddr, bytes.data(), sizeof(m.imr_multiaddr));
        m.imr_ifindex = static_cast<int>(network_interface);
        return set(IPPROTO_IP, member ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, m);
    }
    case endpoint::family_type::ipv6: {
        ipv6_mreq m{};
        std::memcpy(&m.ipv6mr_multiaddr, bytes.data(), sizeof(m.ipv6mr_multiaddr));
        m.ipv6mr_interface = network_interface != 0 ? network_interface : group.scope_id();
        return set(IPPROTO_IPV6, member ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, m);
    }
    case endpoint::family_type::unix_domain:
        break;
    }
    return -EAFNOSUPPORT;
}

outcome local_endpoint(native_handle h, endpoint& e) noexcept {
    native_address a;
    auto const known = checked(::getsockname(descriptor(h), a.get(), a.size_for_result()));
    return known < 0 ? known : a.to(e);
}

outcome peer_endpoint(native_handle h, endpoint& e) noexcept {
    native_address a;
    auto const known = checked(::getpeername(descriptor(h), a.get(), a.size_for_result()));
    return known < 0 ? known : a.to(e);
}

// A named pipe that nobody has written to yet, since this opened it, isn't at its end.
[[gnu::cold, gnu::noinline]] outcome end_or_wait(native_handle h) noexcept {
    struct stat s;
    if (::fstat(descriptor(h), &s) < 0 || !S_ISFIFO(s.st_mode)) {
        return 0;
    }
    pollfd p{descriptor(h), POLLIN, 0};
    bool const ended = ::poll(&p, 1, 0) == 1 && (p.revents & (POLLIN | POLLHUP)) == POLLHUP;
    return ended ? 0 : -EAGAIN;
}

constexpr outcome or_end(native_handle h, outcome read) noexcept {
    return read == 0 ? end_or_wait(h) : read;
}

// Named pipes, terminals and old kernels don't know RWF_NOWAIT. What blocks is asked first; it then waits all
// the same if somebody else takes what was there in between.
outcome read_if_ready(native_handle h, handle_kind kind, iovec const* v, int n) noexcept {
    if (kind != handle_kind::polled_pipe && !is_ready(h, POLLIN)) {
        return -EAGAIN;
    }
    return retried([&] { return ::readv(descriptor(h), v, n); });
}

outcome read_in_order(native_handle h, handle_kind kind, iovec const* v, int n,
                      bool waiting) noexcept {
    int const flags = waiting || kind == handle_kind::file_stream ? 0 : RWF_NOWAIT;
    auto const moved = retried([&] { return ::preadv2(descriptor(h), v, n, -1, flags); });
    return or_end(h, moved == -EOPNOTSUPP && flags != 0 ? read_if_ready(h, kind, v, n) : moved);
}

/// Receives a datagram, or fails where it is larger than the buffers.
outcome receive_whole(native_handle h, msghdr& m, int flags) noexcept {
    auto const size = retried([&] { return ::recvmsg(descriptor(h), &m, flags | MSG_TRUNC); });
    return size >= 0 && (m.msg_flags & MSG_TRUNC) != 0 ? -EMSGSIZE : size;
}

/// Calls `f` with a header of the whole list; of one whose last buffer is trimmed it holds a copy.
template <class Buffers, class F>
outcome with_header(Buffers const& list, native_address& a, F f) noexcept {
    msghdr m{};
    m.msg_name = a.get();
    m.msg_namelen = a.size();
    if (list.trim_last() == 0) {
        auto const* const array = list.native_array();
        m.msg_iov = reinterpret_cast<iovec*>(const_cast<Buffers::value_type*>(array));
        m.msg_iovlen = list.native_count();
        return f(m);
    }
    if (list.size() > most_buffers) {
        return -EMSGSIZE;
    }
    iovec copy[most_buffers];
    m.msg_iov = copy;
    for (const_buffer const part : list) {
        copy[m.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    return f(m);
}

[[gnu::noinline]] outcome read_otherwise(native_handle h, handle_kind kind, buffer const* b,
                                         std::size_t count, bool waiting) noexcept {
    if (!is_socket(kind)) {
        return read_in_order(h, kind, reinterpret_cast<iovec const*>(b),
                             static_cast<int>(std::min(count, most_buffers)), waiting);
    }
    msghdr m{};
    m.msg_iov = reinterpret_cast<iovec*>(const_cast<buffer*>(b));
    int const flags = waiting ? 0 : MSG_DONTWAIT;
    if (kind == handle_kind::datagram_socket) {
        m.msg_iovlen = count;
        return receive_whole(h, m, flags);
    }
    m.msg_iovlen = std::min(count, most_buffers);
    return retried([&] { return ::recvmsg(descriptor(h), &m, flags); });
}

// One buffer of a socket is what servers move. A call that doesn't wait is not interrupted by signals, so there is
// nothing to retry and no register to save.
outcome read(native_handle h, handle_kind kind, buffer const* b, std::size_t count) noexcept {
    if (count == 1 && kind == handle_kind::stream_socket) [[likely]] {
        return checked(::recv(descriptor(h), b->data(), b->size(), MSG_DONTWAIT));
    }
    if (count == 1 && kind == handle_kind::polled_pipe) {
        return or_end(h, checked(::read(descriptor(h), b->data(), b->size())));
    }
    return read_otherwise(h, kind, b, count, false);
}

outcome read_waiting(native_handle h, handle_kind kind, buffer const* b,
                     std::size_t count) noexcept {
    if (count == 1 && !is_socket(kind)) {
        return or_end(h, retried([&] { return ::read(descriptor(h), b->data(), b->size()); }));
    }
    return read_otherwise(h, kind, b, count, true);
}

#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

// As `read_if_ready`. What is ready has room for PIPE_BUF bytes; more would wait.
outcome write_if_ready(native_handle h, handle_kind kind, iovec const* v, int n) noexcept {
    if (kind == handle_kind::polled_pipe) {
        return retried([&] { return ::writev(descriptor(h), v, n); });
    }
    if (!is_ready(h, POLLOUT)) {
        return -EAGAIN;
    }
    std::size_t bytes = 0;
    int whole = 0;
    while (whole < n && bytes + v[whole].iov_len <= PIPE_BUF) {
        bytes += v[whole++].iov_len;
    }
    return bytes != 0
               ? retried([&] { return ::writev(descriptor(h), v, whole); })
               : retried([&] { return ::write(descriptor(h), v[whole].iov_base, PIPE_BUF); });
}

// Writes to a pipe without raising SIGPIPE on kernels that can't be asked not to: blocks the signal for this thread
// and takes back the one that the write raised.
outcome write_masked(native_handle h, handle_kind kind, iovec const* v, int n) noexcept {
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;
    ::sigemptyset(&pipe_signal);
    ::sigaddset(&pipe_signal, SIGPIPE);
    ::sigpending(&pending);
    ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    auto written = retried([&] { return ::pwritev2(descriptor(h), v, n, -1, RWF_NOWAIT); });
    if (written == -EOPNOTSUPP) {
        written = write_if_ready(h, kind, v, n);
    }
    if (written == -EPIPE && !::sigismember(&pending, SIGPIPE)) {
        timespec const none{};
        while (::sigtimedwait(&pipe_signal, nullptr, &none) < 0 && errno == EINTR) {
        }
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return written;
}

[[gnu::noinline]] outcome write_otherwise(native_handle h, handle_kind kind, const_buffer const* b,
                                          std::size_t count) noexcept {
    if (!is_socket(kind)) {
        auto const* const v = reinterpret_cast<iovec const*>(b);
        int const n = static_cast<int>(std::min(count, most_buffers));
        int const flags = kind == handle_kind::file_stream ? 0 : RWF_NOWAIT | RWF_NOSIGNAL;
        auto const written = retried([&] { return ::pwritev2(descriptor(h), v, n, -1, flags); });
        return written == -EOPNOTSUPP ? write_masked(h, kind, v, n) : written;
    }
    msghdr m{};
    m.msg_iov = reinterpret_cast<iovec*>(const_cast<const_buffer*>(b));
    m.msg_iovlen = kind == handle_kind::datagram_socket ? count : std::min(count, most_buffers);
    return retried([&] { return ::sendmsg(descriptor(h), &m, MSG_DONTWAIT | MSG_NOSIGNAL); });
}

outcome write(native_handle h, handle_kind kind, const_buffer const* b,
              std::size_t count) noexcept {
    if (count == 1 && is_socket(kind)) [[likely]] {
        return checked(::send(descriptor(h), b->data(), b->size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    }
    return write_otherwise(h, kind, b, count);
}

outcome send(native_handle h, const_buffers const& b, endpoint const& to) noexcept {
    native_address a(to);
    auto const sent = with_header(b, a, [&](msghdr const& m) {
        return retried([&] { return ::sendmsg(descriptor(h), &m, MSG_DONTWAIT | MSG_NOSIGNAL); });
    });
    if (sent == -EAGAIN && to.family() == endpoint::family_type::unix_domain) {
        // Ready all the same: the receiver's queue is full, and this socket isn't connected to it.
        return is_ready(h, POLLOUT) ? -ENOBUFS : sent;
    }
    return sent;
}

outcome receive(native_handle h, buffers const& b, endpoint& from) noexcept {
    native_address a;
    auto const size = with_header(b, a, [&](msghdr& m) {
        auto const received = receive_whole(h, m, MSG_DONTWAIT);
        *a.size_for_result() = m.msg_namelen;
        return received;
    });
    if (size < 0) {
        return size;
    }
    auto const known = a.to(from);
    return known < 0 ? known : size;
}

outcome await_ready(native_handle h, std::uint32_t what, std::int64_t timeout) noexcept {
    pollfd p{descriptor(h), static_cast<short>(what == readable ? POLLIN : POLLOUT), 0};
    std::int64_t const end = timeout < 0 ? 0 : steady_now() + timeout;
    for (;;) {
        timespec const t{timeout / 1'000'000'000, timeout % 1'000'000'000};
        auto const count = checked(::ppoll(&p, 1, timeout < 0 ? nullptr : &t, nullptr));
        if (count == -EINTR) {
            if (timeout >= 0) {
                timeout = end - steady_now();
                timeout = timeout < 0 ? 0 : timeout;
            }
            continue;
        }
        return count <= 0 ? count : outcome{what};
    }
}

outcome sleep(std::int64_t time) noexcept {
    timespec const t{time / 1'000'000'000, time % 1'000'000'000};
    auto const slept = -outcome{::clock_nanosleep(CLOCK_MONOTONIC, 0, &t, nullptr)};
    return slept == -EINTR ? 0 : slept;
}

void* take_memory(std::size_t bytes) noexcept {
    return ::operator new(bytes, std::align_val_t(pooled_memory_alignment), std::nothrow);
}

void give_memory(void* memory) noexcept {
    ::operator delete(memory, std::align_val_t(pooled_memory_alignment));
}

constinit seam const native{
    .simulated = false,
    .steady_now = steady_now,
    .system_now = system_now,
    .close = close,
    .open_pipe = open_pipe,
    .open_socket_pair = open_socket_pair,
    .open_socket = open_socket,
    .bind = bind,
    .listen = listen,
    .accept = accept,
    .connect = connect,
    .connect_outcome = connect_outcome,
    .shutdown_write = shutdown_write,
    .set_option = set_option,
    .local_endpoint = local_endpoint,
    .peer_endpoint = peer_endpoint,
    .divides_stream = divides_stream,
    .set_blocking = set_blocking,
    .is_blocking = is_blocking,
    .kind_of = kind_of,
    .set_membership = set_membership,
    .read = read,
    .read_waiting = read_waiting,
    .write = write,
    .send = send,
    .receive = receive,
    .await_ready = await_ready,
    .open_clock_watch = open_clock_watch,
    .open_poller = open_poller,
    .close_poller = close_poller,
    .poller_add = poller_add,
    .poller_remove = poller_remove,
    .poller_wait = poller_wait,
    .poller_wake = poller_wake,
    .open_file = open_file,
    .make_pipe = make_pipe,
    .reopen_file = reopen_file,
    .duplicate = duplicate,
    .rename = rename,
    .unlink = unlink,
    .describe_file = describe_file,
    .file_size = file_size,
    .resize_file = resize_file,
    .deallocate = deallocate,
    .copy_range = copy_range,
    .lock_range = lock_range,
    .read_at = read_at,
    .try_read_at = try_read_at,
    .write_at = write_at,
    .sync_file = sync_file,
    .map_file = map_file,
    .remap_file = remap_file,
    .unmap_file = unmap_file,
    .guard_map = guard_map,
    .sleep = sleep,
    .start_thread = start_thread,
    .join_thread = join_thread,
    .processor_count = processor_count,
    .process = process,
    .take_memory = take_memory,
    .give_memory = give_memory,
};

}  // namespace

seam const& native_seam() noexcept { return native; }

constinit seam const* internal::current = &native;

seam const* replace_seam(seam const* with) noexcept {
    seam const* const before = internal::current;
    internal::current = with != nullptr ? with : &native;
    return before;
}

}  // namespace plumb::platform
