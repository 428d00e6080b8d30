// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_system.hpp"

#include <plumb/base/assert.hpp>

#include "io/this_thread.hpp"
#include "sim/datagram_socket.hpp"
#include "sim/pipe.hpp"
#include "sim/stream_socket.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace plumb::sim {

constinit std::atomic<simulated_system*> simulated_system::in_use{nullptr};

simulated_system::simulated_system(std::uint64_t seed, world::options const& o)
    : seed_(seed),
      options_(o),
      thread_(this_thread_token()),
      system_start_(
          std::chrono::duration_cast<std::chrono::nanoseconds>(o.system_start.time_since_epoch())
              .count()),
      around_{.time = {},
              .pick = random(seed),
              .short_transfers = o.short_transfers,
              .socket_buffer = o.socket_buffer,
              .least_latency = std::max<std::int64_t>(o.least_latency.count(), 0),
              .most_latency =
                  std::max<std::int64_t>({o.most_latency.count(), o.least_latency.count(), 0})},
      network_(around_) {}

world_counters const& simulated_system::counters() noexcept {
    counters_.handles_open = handles_.size();
    counters_.connections = around_.connections;
    counters_.datagrams_dropped = around_.datagrams_dropped;
    counters_.clock_moves = around_.time.moves();
    return counters_;
}

// Handles.

node* simulated_system::find(native_handle h) const noexcept {
    auto const found = handles_.find(h);
    return found != handles_.end() ? found->second.get() : nullptr;
}

bool simulated_system::has_room_for(std::size_t handles) const noexcept {
    return handles_.size() + handles <= options_.most_handles;
}

native_handle simulated_system::open(std::shared_ptr<node> n) {
    native_handle number = next_number_;
    if (free_numbers_.empty()) {
        ++next_number_;
    } else {
        number = free_numbers_.top();
        free_numbers_.pop();
    }
    PLUMB_ASSERT(number < poller_bit);
    native_handle const h = handle_bit | number;
    ++n->handles;
    handles_.emplace(h, std::move(n));
    counters_.handles_most = std::max<std::uint64_t>(counters_.handles_most, handles_.size());
    return h;
}

outcome
simulated_system::open_both(std::pair<std::shared_ptr<node>, std::shared_ptr<node>> const& nodes,
                            native_handle (&ends)[2]) {
    ends[0] = open(nodes.first);
    ends[1] = open(nodes.second);
    return 0;
}

outcome simulated_system::close(native_handle h) {
    auto const found = handles_.find(h);
    if (found == handles_.end()) {
        return failed_with(std::errc::bad_file_descriptor);
    }
    auto const closed = std::move(found->second);
    handles_.erase(found);
    if (options_.reuse_numbers) {
        free_numbers_.push(h & ~handle_bit);
    }
    if (--closed->handles == 0) {
        closed->unwatch_all();
        closed->close();
    }
    return 0;
}

// Waiting.

/// Lets time pass until `ready` gives something, for `timeout` ns at most.
template <class Ready>
outcome simulated_system::pass_time(std::int64_t timeout, Ready ready) {
    timeline& time = around_.time;
    auto const end =
        timeout < 0 || timeout > timeline::never - now() ? timeline::never : now() + timeout;
    // A program that always finds something to do lets time pass, too, or its deadlines would never
    // come.
    if (++busy_turns_ > timeless_turns) {
        time.advance_to(now() + busy_turn);
    }
    for (;;) {
        if (outcome const got = ready(); got != 0 || now() >= end) {
            return got;
        }
        busy_turns_ = 0;
        if (time.next() > end) {
            time.advance_to(end);
        } else if (time.next() != timeline::never) {
            time.advance_to(time.next());
        } else {
            return failed_with(std::errc::resource_deadlock_would_occur);
        }
    }
}

outcome simulated_system::await_ready(native_handle h, std::uint32_t what, std::int64_t timeout) {
    auto const wanted = hung_up | failed | (what == platform::readable ? can_read : can_write);
    return pass_time(timeout, [&]() -> outcome {
        // A handle that isn't one is ready, to fail.
        node const* const n = find(h);
        return n == nullptr || (n->state() & wanted) != 0 ? outcome{what} : 0;
    });
}

std::size_t simulated_system::pollers_open() const noexcept {
    return pollers_.size() - static_cast<std::size_t>(std::ranges::count(pollers_, nullptr));
}

std::shared_ptr<poller> const& simulated_system::find_poller(native_handle p) const noexcept {
    auto const index = static_cast<std::size_t>(p & ~(handle_bit | poller_bit));
    require((p & handle_bit) != 0 && (p & poller_bit) != 0 && index < most_pollers &&
                pollers_[index] != nullptr,
            "a multiplexer of another system was used inside of a simulated world: make it after "
            "the world, and "
            "destroy it before");
    return pollers_[index];
}

outcome simulated_system::open_poller() {
    auto const unused = std::ranges::find(pollers_, nullptr);
    if (unused == pollers_.end()) {
        return failed_with(std::errc::too_many_files_open);
    }
    *unused = std::make_shared<poller>();
    auto const index = static_cast<std::size_t>(unused - pollers_.begin());
    woken_[index].store(false);
    return handle_bit | poller_bit | static_cast<native_handle>(index);
}

void simulated_system::close_poller(native_handle p) noexcept {
    (void)find_poller(p);
    pollers_[static_cast<std::size_t>(p & ~(handle_bit | poller_bit))] = nullptr;
}

void simulated_system::wake(native_handle p) noexcept {
    auto const index = static_cast<std::size_t>(p & ~(handle_bit | poller_bit));
    if (index < most_pollers) {
        woken_[index].store(true);
    }
}

outcome simulated_system::wait(native_handle p, platform::poll_event* events, std::size_t capacity,
                               std::int64_t timeout) {
    poller& from = *find_poller(p);
    if (capacity == 0) {
        return failed_with(std::errc::invalid_argument);
    }
    std::atomic<bool>& woken = woken_[static_cast<std::size_t>(p & ~(handle_bit | poller_bit))];
    if (woken.exchange(false)) {
        timeout = 0;
    }
    auto const count = pass_time(
        timeout, [&] { return static_cast<outcome>(from.take(events, capacity, around_.pick)); });
    counters_.events += count > 0 ? static_cast<std::uint64_t>(count) : 0;
    return count;
}

// The fingerprint.

void simulated_system::mix(std::uint64_t value) noexcept {
    fingerprint_ = (fingerprint_ ^ value) * 1'099'511'628'211u;
    fingerprint_ ^= fingerprint_ >> 29;
}

void simulated_system::mix_bytes(std::byte const* bytes, std::size_t size) noexcept {
    for (; size != 0; --size) {
        fingerprint_ =
            (fingerprint_ ^ std::to_integer<std::uint64_t>(*bytes++)) * 1'099'511'628'211u;
    }
}

outcome simulated_system::note(int call, native_handle h, outcome o) noexcept {
    mix(static_cast<std::uint64_t>(call));
    mix(static_cast<std::uint64_t>(h));
    mix(static_cast<std::uint64_t>(o));
    mix(static_cast<std::uint64_t>(now()));
    return o;
}

// The seam.

struct simulated_system::calls {
    enum call : int {
        close_call,
        open_pipe_call,
        open_socket_pair_call,
        open_socket_call,
        bind_call,
        listen_call,
        accept_call,
        connect_call,
        connect_outcome_call,
        shutdown_write_call,
        set_option_call,
        local_endpoint_call,
        peer_endpoint_call,
        read_call,
        write_call,
        await_ready_call,
        add_call,
        remove_call,
        wait_call,
        set_membership_call,
        send_call,
        receive_call,
        duplicate_call,
    };

    static simulated_system& here() noexcept {
        simulated_system& s = *in_use.load(std::memory_order_relaxed);
        require(s.thread_ == this_thread_token(),
                "a simulated world was used on another thread than the one that made it");
        return s;
    }

    /// Calls `f` with what the handle names. @return what it gives, or minus EBADF
    template <class F>
    static outcome on(call c, native_handle h, F f) {
        simulated_system& s = here();
        node* const n = s.find(h);
        return s.note(c, h, n != nullptr ? f(*n) : failed_with(std::errc::bad_file_descriptor));
    }

    template <class Make>
    static outcome open_two(call c, native_handle (&ends)[2], Make make) {
        simulated_system& s = here();
        return s.note(c, 0,
                      s.has_room_for(2) ? s.open_both(make(s), ends)
                                        : failed_with(std::errc::too_many_files_open));
    }

    static std::int64_t steady_now() noexcept { return steady_start + here().now(); }
    static std::int64_t system_now() noexcept {
        simulated_system const& s = here();
        return s.system_start_ + s.now();
    }

    static outcome close(native_handle h) noexcept {
        simulated_system& s = here();
        return s.note(close_call, h, s.close(h));
    }
    static outcome open_pipe(native_handle (&ends)[2]) noexcept {
        return open_two(open_pipe_call, ends, [](simulated_system& s) {
            return pipe::make(s.around_, s.options_.pipe_buffer);
        });
    }
    static outcome open_socket_pair(native_handle (&ends)[2]) noexcept {
        return open_two(open_socket_pair_call, ends, [](simulated_system& s) {
            return stream_socket::make_pair(s.around_, s.network_);
        });
    }
    static outcome open_socket(handle_kind kind, endpoint::family_type f) noexcept {
        simulated_system& s = here();
        if (!s.has_room_for(1)) {
            return s.note(open_socket_call, 0, failed_with(std::errc::too_many_files_open));
        }
        std::shared_ptr<node> made;
        if (kind == handle_kind::datagram_socket) {
            made = std::make_shared<datagram_socket>(s.around_, s.network_, f);
        } else {
            made = std::make_shared<stream_socket>(s.around_, s.network_, f);
        }
        return s.note(open_socket_call, 0, s.open(std::move(made)));
    }
    static outcome bind(native_handle h, endpoint const& e) noexcept {
        return on(bind_call, h, [&](node& n) { return n.bind(e); });
    }
    static outcome listen(native_handle h, int backlog) noexcept {
        return on(listen_call, h, [&](node& n) { return n.listen(backlog); });
    }
    static outcome accept(native_handle h) noexcept {
        return on(accept_call, h, [&](node& n) {
            simulated_system& s = here();
            if (!s.has_room_for(1)) {
                return failed_with(std::errc::too_many_files_open);
            }
            if (auto const refused = n.accepts(); refused < 0) {
                return refused;
            }
            auto taken = n.accept();
            return taken != nullptr ? s.open(std::move(taken))
                                    : failed_with(std::errc::resource_unavailable_try_again);
        });
    }
    static outcome connect(native_handle h, endpoint const& e) noexcept {
        return on(connect_call, h, [&](node& n) { return n.connect(e); });
    }
    static outcome connect_outcome(native_handle h) noexcept {
        return on(connect_outcome_call, h, [](node& n) { return n.connect_outcome(); });
    }
    static outcome shutdown_write(native_handle h) noexcept {
        return on(shutdown_write_call, h, [](node& n) { return n.shutdown_write(); });
    }
    static outcome set_option(native_handle h, platform::socket_option option, int value) noexcept {
        return on(set_option_call, h, [&](node& n) { return n.set_option(option, value); });
    }
    static outcome set_membership(native_handle h, endpoint const& group, std::uint32_t,
                                  bool member) noexcept {
        return on(set_membership_call, h, [&](node& n) { return n.set_membership(group, member); });
    }
    static outcome local_endpoint(native_handle h, endpoint& e) noexcept {
        return on(local_endpoint_call, h, [&](node& n) { return n.local_endpoint(e); });
    }
    static outcome peer_endpoint(native_handle h, endpoint& e) noexcept {
        return on(peer_endpoint_call, h, [&](node& n) { return n.peer_endpoint(e); });
    }

    static outcome duplicate(native_handle h) noexcept {
        simulated_system& s = here();
        auto const found = s.handles_.find(h);
        return s.note(duplicate_call, h,
                      found == s.handles_.end() ? failed_with(std::errc::bad_file_descriptor)
                      : s.has_room_for(1)       ? s.open(std::shared_ptr(found->second))
                                                : failed_with(std::errc::too_many_files_open));
    }
    static outcome is_blocking(native_handle h) noexcept {
        return here().find(h) != nullptr ? 0 : failed_with(std::errc::bad_file_descriptor);
    }
    static outcome kind_of(native_handle h) noexcept {
        node const* const n = here().find(h);
        return n != nullptr ? static_cast<outcome>(n->what())
                            : failed_with(std::errc::bad_file_descriptor);
    }

    static outcome divides_stream(native_handle) noexcept { return 0; }
    static outcome set_blocking(native_handle, bool) noexcept {
        return failed_with(std::errc::not_supported);  // nothing here ever blocks
    }
    static outcome read(native_handle h, handle_kind kind, buffer const* b,
                        std::size_t count) noexcept {
        auto const list = std::span(b, std::min(count, platform::most_buffers));
        return count_read(on(read_call, h, [&](node& n) {
            auto const refused = refusal(n, kind, count);
            return refused < 0 ? refused : n.read(list);
        }));
    }
    static outcome receive(native_handle h, buffers const& b, endpoint& from) noexcept {
        auto const list = listed(b);
        return count_read(on(receive_call, h, [&](node& n) {
            auto const refused = refusal(n, handle_kind::datagram_socket, list.size());
            return refused < 0 ? refused : n.receive(list, from);
        }));
    }
    static outcome write(native_handle h, handle_kind kind, const_buffer const* b,
                         std::size_t count) noexcept {
        auto const list = std::span(b, std::min(count, platform::most_buffers));
        return count_written(on(write_call, h,
                                [&](node& n) {
                                    auto const refused = refusal(n, kind, count);
                                    return refused < 0 ? refused : n.write(list);
                                }),
                             list);
    }
    static outcome send(native_handle h, const_buffers const& b, endpoint const& to) noexcept {
        auto const list = listed(b);
        return count_written(on(send_call, h,
                                [&](node& n) {
                                    auto const refused =
                                        refusal(n, handle_kind::datagram_socket, list.size());
                                    return refused < 0 ? refused : n.send(list, to);
                                }),
                             list);
    }

    template <class Buffers>
    static std::vector<typename Buffers::value_type> listed(Buffers const& b) {
        std::vector<typename Buffers::value_type> list;
        for (auto const part : b) {
            list.push_back(part);
        }
        return list;
    }
    static outcome refusal(node const& n, handle_kind kind, std::size_t count) noexcept {
        if (platform::is_socket(kind) && !n.is_socket()) {
            return failed_with(std::errc::not_a_socket);
        }
        bool const cut = kind == handle_kind::datagram_socket && count > platform::most_buffers;
        return cut ? failed_with(std::errc::message_size) : 0;
    }
    static outcome count_read(outcome moved) noexcept {
        here().counters_.bytes_read += moved > 0 ? static_cast<std::uint64_t>(moved) : 0;
        return moved;
    }
    static outcome count_written(outcome moved, std::span<const_buffer const> list) noexcept {
        if (moved > 0) {
            simulated_system& s = here();
            s.counters_.bytes_written += static_cast<std::uint64_t>(moved);
            auto left = static_cast<std::size_t>(moved);
            for (const_buffer const& part : list) {
                s.mix_bytes(part.data(), std::min(part.size(), left));
                left -= std::min(part.size(), left);
            }
        }
        return moved;
    }
    static outcome await_ready(native_handle h, std::uint32_t what, std::int64_t timeout) noexcept {
        simulated_system& s = here();
        return s.note(await_ready_call, h, s.await_ready(h, what, timeout));
    }

    static outcome open_clock_watch() noexcept {
        return failed_with(std::errc::not_supported);  // nobody sets the clock here
    }
    static outcome open_poller() noexcept { return here().open_poller(); }
    static void close_poller(native_handle p) noexcept { here().close_poller(p); }
    static outcome poller_add(native_handle p, native_handle h, std::uint64_t key) noexcept {
        return on(add_call, h, [&](node& n) { return n.watch(here().find_poller(p), h, key); });
    }
    static outcome poller_remove(native_handle p, native_handle h) noexcept {
        return on(remove_call, h, [&](node& n) { return n.unwatch(*here().find_poller(p), h); });
    }
    static outcome poller_wait(native_handle p, platform::poll_event* events, std::size_t capacity,
                               std::int64_t timeout) noexcept {
        simulated_system& s = here();
        auto const count = s.wait(p, events, capacity, timeout);
        for (outcome i = 0; i < count; ++i) {
            s.mix(events[i].key());
            s.mix(events[i].ready());
        }
        return s.note(wait_call, p, count);
    }
    static void poller_wake(native_handle p) noexcept {
        if (simulated_system* const s = in_use.load()) {
            s->wake(p);
        }
    }

    // There are no simulated files.
    template <class... Args>
    static outcome unsupported(Args...) noexcept {
        return failed_with(std::errc::function_not_supported);
    }

    // A world has one thread.
    static outcome start_thread(platform::thread_start&) noexcept {
        return failed_with(std::errc::operation_not_supported);
    }
    static void join_thread(platform::thread_start&) noexcept {}
    static int processor_count() noexcept { return 1; }
    static std::int64_t process() noexcept { return 1; }
    static void* take_memory(std::size_t bytes) noexcept {
        return platform::native_seam().take_memory(bytes);
    }
    static void give_memory(void* memory) noexcept { platform::native_seam().give_memory(memory); }

    static constexpr platform::seam seam{
        .simulated = true,
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
        .read_waiting = read,
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
        .open_file = unsupported,
        .make_pipe = unsupported,
        .reopen_file = unsupported,
        .duplicate = duplicate,
        .rename = unsupported,
        .unlink = unsupported,
        .describe_file = unsupported,
        .file_size = unsupported,
        .resize_file = unsupported,
        .deallocate = unsupported,
        .copy_range = unsupported,
        .lock_range = unsupported,
        .read_at = unsupported,
        .try_read_at = unsupported,
        .write_at = unsupported,
        .sync_file = unsupported,
        .map_file = unsupported,
        .remap_file = unsupported,
        .unmap_file = unsupported,
        .guard_map = unsupported,
        .sleep = unsupported,
        .start_thread = start_thread,
        .join_thread = join_thread,
        .processor_count = processor_count,
        .process = process,
        .take_memory = take_memory,
        .give_memory = give_memory,
    };
};

platform::seam const& simulated_system::table() noexcept { return calls::seam; }

}  // namespace plumb::sim
