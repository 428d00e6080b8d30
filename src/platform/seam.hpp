// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/buffer.hpp>
#include <plumb/base/buffers.hpp>
#include <plumb/base/deadline.hpp>
#include <plumb/base/error.hpp>
#include <plumb/base/io_request.hpp>
#include <plumb/handle/barrier_kind.hpp>
#include <plumb/handle/endpoint.hpp>
#include <plumb/handle/native_handle.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <system_error>

// The seam between plumb and the operating system: everything that reaches outside goes through this table, so
// that tests can fail any call and a simulated system can stand in for the real one.
namespace plumb::platform {

/// A call's value when it is not negative, else minus the `std::errc` that it failed with; or what plumb itself says,
/// below all of those.
using outcome = std::int64_t;

inline constexpr outcome above_own_errors = -0x10000;

[[nodiscard]] constexpr outcome failed_with(std::errc e) noexcept {
    return -static_cast<outcome>(e);
}

[[nodiscard]] constexpr outcome failed_with(error e) noexcept {
    return above_own_errors - static_cast<outcome>(e);
}

[[nodiscard]] inline std::error_code error_of(outcome o) noexcept {
    if (o < above_own_errors) {
        return static_cast<error>(above_own_errors - o);
    }
    return {static_cast<int>(-o), std::system_category()};
}

/// No time-out.
inline constexpr std::int64_t forever = -1;

/// What a descriptor can be ready for; also what a poller reports.
enum readiness : std::uint32_t {
    readable = 1,
    /// Urgent data divide the stream, or each read takes one message.
    divided = 2,
    writable = 4,
    /// There is an error, the peer has hung up, or has sent its last byte.
    failed = 8,
    disconnected = 0x10,
    read_ended = 0x2000,
    /// After any of these no later event will come.
    hung_up = failed | disconnected | read_ended,
    /// With any of these a short read doesn't prove that nothing is left.
    inconclusive = hung_up | divided,
};

/// With what each of them implies: reads that end or fail don't wait.
[[nodiscard]] constexpr std::uint32_t implied(std::uint32_t ready) noexcept {
    if ((ready & hung_up) != 0) [[unlikely]] {
        ready |= readable | ((ready & (failed | disconnected)) != 0 ? writable : 0u);
    }
    return ready;
}

/// How many buffers one call takes at most; of a longer list it moves the first.
inline constexpr std::size_t most_buffers = 1024;

/// In 12 bytes, as some kernels write it.
class poll_event {
public:
    poll_event() noexcept {}  // NOLINT: to be filled
    poll_event(std::uint64_t key, std::uint32_t ready) noexcept
        : ready_(ready), key_(std::bit_cast<words>(key)) {}

    [[nodiscard]] std::uint32_t ready() const noexcept { return ready_; }
    [[nodiscard]] std::uint64_t key() const noexcept { return std::bit_cast<std::uint64_t>(key_); }

private:
    using words = std::array<std::uint32_t, 2>;
    std::uint32_t ready_;
    words key_;
};

/// The key of a wake-up, where it is reported as an event.
inline constexpr std::uint64_t no_key = 0;

enum class socket_option : std::uint8_t {
    no_delay,
    reuse_address,
    reuse_port,
    send_buffer,
    receive_buffer,
    linger,
    broadcast,
    multicast_interface
};

/// How a file is opened.
enum open_how : std::uint32_t {
    open_read = 1,
    open_write = 2,
    /// What is written goes to the end, wherever it was asked for.
    open_append = 4,
    /// Creates the file where there is none.
    open_create = 8,
    /// With `open_create`: fails where there is one. With `open_unnamed`: it stays without a name.
    open_exclusive = 16,
    open_truncate = 32,
    /// Writes are over when the device has them.
    open_synchronous = 64,
    /// Bytes go to and from the device past the system's cache.
    open_direct = 128,
    /// A new file in the directory `path`, without a name.
    open_unnamed = 256,
    /// Only the place in the file system, not what is in it.
    open_place = 512,
    open_directory = 1024,
    /// Neither this nor what follows ever waits for another end.
    open_nonblocking = 2048,
};

/// What a native handle names.
enum class native_kind : std::uint8_t {
    /// Also a device of blocks.
    file,
    directory,
    pipe,
    terminal,
    /// Whatever else is read and written in order.
    device,
    stream_socket,
    listen_socket,
    datagram_socket,
    /// A socket of another kind.
    other_socket,
};

[[nodiscard]] constexpr bool is_socket(handle_kind kind) noexcept {
    return kind == handle_kind::stream_socket || kind == handle_kind::listen_socket ||
           kind == handle_kind::shared_listen_socket || kind == handle_kind::datagram_socket;
}

/// How a file was opened, as far as it matters for i/o.
struct file_facts {
    /// Writes go to the end.
    bool appends = false;
    /// What addresses, sizes and offsets must be multiples of.
    std::uint32_t alignment = 1;
};

enum class range_locking : std::uint8_t { unlock, share, exclude };

/// A thread: what it runs, and while it runs what the system calls it. Stays where it is from its start to its end.
struct thread_start {
    void (*body)(void* argument) noexcept;
    void* argument;
    std::uintptr_t native = 0;
};

/// A system. Every function may be called from any thread; none throws; none changes errno in a way that callers
/// see. Times are ns. Calls on descriptors never block unless said; they retry interrupted calls themselves.
struct seam {
    /// Whether this stands in for the real system.
    bool simulated;

    std::int64_t (*steady_now)() noexcept;
    std::int64_t (*system_now)() noexcept;

    outcome (*close)(native_handle) noexcept;
    /// Fills `ends` with the reading and the writing end.
    outcome (*open_pipe)(native_handle (&ends)[2]) noexcept;
    /// Fills `ends` with two connected stream sockets.
    outcome (*open_socket_pair)(native_handle (&ends)[2]) noexcept;
    outcome (*open_socket)(handle_kind, endpoint::family_type) noexcept;
    outcome (*bind)(native_handle, endpoint const&) noexcept;
    outcome (*listen)(native_handle, int backlog) noexcept;
    /// @return the connection, or minus EAGAIN
    outcome (*accept)(native_handle) noexcept;
    /// Minus EINPROGRESS when it goes on in the background; the descriptor is writable when it is over.
    outcome (*connect)(native_handle, endpoint const&) noexcept;
    /// @return 0, or minus what a background `connect` failed with; minus EAGAIN while it goes on
    outcome (*connect_outcome)(native_handle) noexcept;
    outcome (*shutdown_write)(native_handle) noexcept;
    outcome (*set_option)(native_handle, socket_option, int value) noexcept;
    outcome (*local_endpoint)(native_handle, endpoint&) noexcept;
    outcome (*peer_endpoint)(native_handle, endpoint&) noexcept;

    /// @return whether control data may divide the stream of this socket, so that a read ends before them
    outcome (*divides_stream)(native_handle) noexcept;
    /// Marks the open end of a pipe as one that blocks, or never does.
    outcome (*set_blocking)(native_handle, bool) noexcept;
    /// @return whether calls on it wait
    outcome (*is_blocking)(native_handle) noexcept;
    /// @return a `native_kind`
    outcome (*kind_of)(native_handle) noexcept;
    /// Joins a multicast group, or leaves it. @param network_interface  0: the group's scope, or the system's choice
    outcome (*set_membership)(native_handle, endpoint const& group, std::uint32_t network_interface,
                              bool member) noexcept;

    /// 0 at the end of a stream; minus EAGAIN where a named pipe has had no writer yet.
    /// Of datagrams: reads one; minus EMSGSIZE where it is larger than the buffers. A list that is too long for one
    /// call fails so, too, also when it is written.
    outcome (*read)(native_handle, handle_kind, buffer const*, std::size_t count) noexcept;
    /// The same, but blocks until there is something, unless the descriptor is one that never does.
    outcome (*read_waiting)(native_handle, handle_kind, buffer const*, std::size_t count) noexcept;
    outcome (*write)(native_handle, handle_kind, const_buffer const*, std::size_t count) noexcept;
    /// Sends one datagram. Minus ENOBUFS where nothing tells when there will be room for it.
    outcome (*send)(native_handle, const_buffers const&, endpoint const& to) noexcept;
    /// Receives one datagram, as `read`.
    outcome (*receive)(native_handle, buffers const&, endpoint& from) noexcept;
    /// Blocks until `native` is ready for `what`, hung up, or the time-out.
    /// @return the readiness, 0 at the time-out
    outcome (*await_ready)(native_handle, std::uint32_t what, std::int64_t timeout) noexcept;

    /// Opens what a poller reports as readable each time that the system clock was set.
    outcome (*open_clock_watch)() noexcept;

    /// A poller reports each change of readiness once, and when a descriptor is added what it is ready for; not all
    /// that is `implied`. What is added with `no_key` only ends waits.
    outcome (*open_poller)() noexcept;
    void (*close_poller)(native_handle poller) noexcept;
    outcome (*poller_add)(native_handle poller, native_handle, std::uint64_t key) noexcept;
    outcome (*poller_remove)(native_handle poller, native_handle) noexcept;
    /// Blocks until there are events, a wake-up, or the time-out. A wake-up may be an event with `no_key`.
    /// @return the number of events
    outcome (*poller_wait)(native_handle poller, poll_event*, std::size_t capacity,
                           std::int64_t timeout) noexcept;
    /// Ends the poller's current or next wait. Also from signal handlers.
    void (*poller_wake)(native_handle poller) noexcept;

    // Files, whose calls block. A path ends with a zero; `base` is a directory, or none for the working directory.

    outcome (*open_file)(native_handle base, char const* path, std::uint32_t how) noexcept;
    /// Makes a named pipe, which isn't opened.
    outcome (*make_pipe)(native_handle base, char const* path) noexcept;
    /// Opens the same file again, with none of the flags that are about names.
    outcome (*reopen_file)(native_handle, std::uint32_t how) noexcept;
    /// @return another native handle of the same open file
    outcome (*duplicate)(native_handle) noexcept;
    /// Takes the name from what has it.
    outcome (*rename)(native_handle base, char const* from, char const* to) noexcept;
    outcome (*unlink)(native_handle base, char const* path) noexcept;
    outcome (*describe_file)(native_handle, file_facts&) noexcept;
    outcome (*file_size)(native_handle) noexcept;
    outcome (*resize_file)(native_handle, extent_type size) noexcept;
    /// Makes bytes before the end zero, and gives their space back. Minus EOPNOTSUPP where that can't be.
    outcome (*deallocate)(native_handle, extent_type offset, extent_type bytes) noexcept;
    /// @return how many bytes were copied, or shared; 0 at the end
    outcome (*copy_range)(native_handle from, extent_type offset, native_handle to,
                          extent_type to_offset, extent_type bytes) noexcept;
    /// @param bytes  0 for all from `offset` on
    /// @return minus EAGAIN where another open file holds a lock and it should not `wait`
    outcome (*lock_range)(native_handle, range_locking, extent_type offset, extent_type bytes,
                          bool wait) noexcept;
    /// Offset `no_offset` is the position of the open file.
    outcome (*read_at)(native_handle, buffer const*, std::size_t count,
                       extent_type offset) noexcept;
    /// The same of what is in memory, without waiting: minus EAGAIN where the first byte isn't, EOPNOTSUPP where that
    /// can't be known.
    outcome (*try_read_at)(native_handle, buffer const*, std::size_t count,
                           extent_type offset) noexcept;
    outcome (*write_at)(native_handle, const_buffer const*, std::size_t count,
                        extent_type offset) noexcept;
    /// @param bytes  0 for all from `offset` on
    outcome (*sync_file)(native_handle, barrier_kind, extent_type offset,
                         extent_type bytes) noexcept;

    /// Makes room for a file in the address space, also for what it may grow by, and shows the file there; to be
    /// written to where the file is open for that.
    /// @return the address
    outcome (*map_file)(native_handle, extent_type bytes) noexcept;
    /// Makes the room larger or smaller. @return the address, which may be another one
    outcome (*remap_file)(void* map, extent_type bytes, extent_type to) noexcept;
    outcome (*unmap_file)(void* map, extent_type bytes) noexcept;
    /// Calls `call(object)`, and leaves it where it touches bytes of the range that can't be reached.
    /// @return 0, or minus EFAULT if it was left
    outcome (*guard_map)(void const* begin, std::size_t bytes, void (*call)(void*) noexcept,
                         void* object) noexcept;

    /// Blocks for that long, or until a signal comes.
    outcome (*sleep)(std::int64_t time) noexcept;

    outcome (*start_thread)(thread_start&) noexcept;
    /// Blocks until the thread has ended. Once for each that was started.
    void (*join_thread)(thread_start&) noexcept;
    /// How many threads can run at once; at least 1.
    int (*processor_count)() noexcept;
    /// A number that a process and those that it forks don't share.
    std::int64_t (*process)() noexcept;

    /// Memory for the pool, aligned as its blocks are. @return null where there is none
    void* (*take_memory)(std::size_t bytes) noexcept;
    void (*give_memory)(void*) noexcept;
};

/// The real system of this platform.
[[nodiscard]] seam const& native_seam() noexcept;

namespace internal {
extern constinit seam const* current;
}

/// The system in use.
[[nodiscard]] inline seam const& os() noexcept { return *internal::current; }

/// Puts `with` in use for the whole process; before threads start and handles are opened. Null: the native one.
/// @return what was in use before
seam const* replace_seam(seam const* with) noexcept;

}  // namespace plumb::platform
