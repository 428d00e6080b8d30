// SPDX-License-Identifier: Apache-2.0
#include "io/readiness_backend.hpp"

#include "handle/blocking.hpp"
#include "io/file_helpers.hpp"
#include "io/io_lifecycle.hpp"
#include "io/slot_table.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <new>
#include <span>

// Readiness of a slot: optimistic at first, cleared by EAGAIN, and by a short read where that proves that nothing is
// left (not on unix sockets, nor after urgent data); set again by the poller. Once hung up it is never cleared, because no further event may come.
// A handle is added to the poller when an operation first has to wait, and stays until it is closed.
namespace plumb {

platform::outcome attempt(native_handle native, handle_kind kind, io_operation& op,
                          bool& connecting) noexcept {
    struct fields : io_backend {
        using io_backend::address;
        using io_backend::read_request;
        using io_backend::set_block;
        using io_backend::what;
        using io_backend::write_request;
    };
    auto const& os = platform::os();
    switch (fields::what(op)) {
    case io_operation::action::read: {
        buffers const& b = fields::read_request(op);
        return b.bytes() == 0 ? 0 : os.read(native, kind, b.native_array(), b.native_count());
    }
    case io_operation::action::read_pooled: {
        std::size_t const most = fields::read_request(op).bytes();
        auto block = pooled_buffer::with_capacity(most);
        if (block.capacity() != most) {
            return platform::failed_with(std::errc::not_enough_memory);
        }
        buffer const room = block.room();
        auto const done = most == 0 ? 0 : os.read(native, kind, &room, 1);
        if (done > 0) {
            fields::set_block(op, room);
            (void)block.release();
        }
        return done;
    }
    case io_operation::action::write:
    case io_operation::action::write_zero_copy: {
        const_buffers const& b = fields::write_request(op);
        return b.bytes() == 0 ? 0 : os.write(native, kind, b.native_array(), b.native_count());
    }
    case io_operation::action::accept:
        return accept_now(native, kind);
    case io_operation::action::connect: {
        auto const again = platform::failed_with(std::errc::resource_unavailable_try_again);
        auto done =
            connecting ? os.connect_outcome(native) : os.connect(native, fields::address(op));
        if (done == platform::failed_with(std::errc::operation_in_progress)) {
            done = again;
        }
        connecting = done == again;
        return done;
    }
    case io_operation::action::receive:
        return os.receive(native, fields::read_request(op), fields::address(op));
    case io_operation::action::send:
        return os.send(native, fields::write_request(op), fields::address(op));
    case io_operation::action::wait:
    case io_operation::action::barrier:
        break;
    }
    return platform::failed_with(std::errc::invalid_argument);
}

namespace {

struct readiness_slot : handle_slot {
    bool connecting = false;
};

class readiness_backend final : public io_backend {
    using table = slot_table<readiness_slot>;
    static constexpr int most_at_once = 256;

public:
    readiness_backend(io_multiplexer& m, native_handle poller, table& slots) noexcept
        : io_backend(m), poller_(poller), slots_(slots) {}

    ~readiness_backend() override {
        slots_.for_each([this](readiness_slot& s) { cancel_on_file(s); });
        files_.reset();
        slots_.for_each([this](readiness_slot& s) {
            cancel_all(s);
            s.multiplexer = nullptr;
            s.ready = s.watched = 0;
        });
        platform::os().close_poller(poller_);
        slots_.retire();
    }

    outcome attach(handle& h) noexcept override {
        readiness_slot* const s = slots_.take();
        if (s == nullptr) {
            return platform::failed_with(std::errc::not_enough_memory);
        }
        s->table = &functions;
        if (is_seekable(h.kind())) {
            if (files_ == nullptr) {
                files_.reset(new (std::nothrow) file_helpers(*this));
            }
            if (files_ == nullptr) {
                slots_.give_back(*s);
                return platform::failed_with(std::errc::not_enough_memory);
            }
            set_file(*s, h);
            return 0;
        }
        s->native = native(h);
        s->kind = h.kind();
        if (s->kind == handle_kind::pipe && platform::os().set_blocking(s->native, false) >= 0) {
            s->kind = handle_kind::polled_pipe;
        }
        s->ready = platform::readable | platform::writable;
        if (divides(*s)) {
            s->ready |= platform::divided;
        }
        set_slot(h, *s);
        return 0;
    }

    outcome start(io_operation& op) noexcept override {
        readiness_slot& s = slot_of(op);
        if (is_seekable(s.kind)) {
            auto const begun = begin_on_file(op);
            return begun != again || never_waits(op) ? begun : files_->start(op);
        }
        auto const added = platform::os().poller_add(poller_, s.native, table::key(s));
        if (added < 0) {
            return added;
        }
        s.watched = platform::readable | platform::writable;
        (reads(what(op)) ? s.reader : s.writer) = &op;
        return again;
    }

    outcome otherwise(io_operation& op) noexcept override {
        readiness_slot& s = slot_of(op);
        action const a = what(op);
        auto const done = attempt(s.native, s.kind, op, s.connecting);
        if (done == again) {
            s.ready &= ~(reads(a) ? platform::readable : platform::writable);
        }
        return done;
    }

    outcome poll(io_operation& op) noexcept override {
        readiness_slot& s = slot_of(op);
        if (is_seekable(s.kind)) {
            return files_->poll(op);
        }
        auto const done = try_now(op);
        if (done != again) {
            forget(s, op);
        }
        return done;
    }

    outcome cancel(io_operation& op) noexcept override {
        readiness_slot& s = slot_of(op);
        if (is_seekable(s.kind)) {
            return files_->cancel(op);
        }
        forget(s, op);
        return platform::failed_with(std::errc::operation_canceled);
    }

    outcome await_end(io_operation& op) noexcept override { return files_->await(op); }

    outcome reap(std::int64_t timeout, int max_items) noexcept override {
        if (files_ == nullptr) [[likely]] {
            return reap_ready(timeout, max_items);
        }
        return reap_all(timeout, max_items);
    }

    void end_waits_by(native_handle watch) noexcept override {
        (void)platform::os().poller_add(poller_, watch, platform::no_key);
    }

    void wake() noexcept override { platform::os().poller_wake(poller_); }

private:
    static readiness_slot& slot_of(io_operation const& op) noexcept {
        return static_cast<readiness_slot&>(*slot(op));
    }

    /// Whether a read that fills less than it was given doesn't prove that nothing is left.
    static bool divides(readiness_slot const& s) noexcept {
        switch (s.kind) {
        case handle_kind::stream_socket:
            return platform::os().divides_stream(s.native) > 0;
        case handle_kind::datagram_socket:
        case handle_kind::shared_pipe:  // may be a terminal, which gives lines
        case handle_kind::file_stream:  // can't be waited for
            return true;
        default:
            return false;
        }
    }

    static void forget(readiness_slot& s, io_operation& op) noexcept {
        (reads(what(op)) ? s.reader : s.writer) = nullptr;
    }

    /// Also settles what is over on files. Where the number is bounded they take turns at being first.
    outcome reap_all(std::int64_t timeout, int max_items) noexcept {
        int const first = max_items >= 0 && files_last_ ? 0 : settle_files(max_items);
        files_last_ = !files_last_;
        if (first == max_items) {
            return first;
        }
        auto const ready = reap_ready(files_->any_over() || first != 0 ? 0 : timeout,
                                      max_items < 0 ? -1 : max_items - first);
        if (ready < 0) {
            return first != 0 ? first : ready;
        }
        int const count = first + static_cast<int>(ready);
        return count + settle_files(max_items < 0 ? -1 : max_items - count);
    }

    /// @return how many, at most `max_items`; what is over meanwhile may wait for the next turn
    int settle_files(int max_items) noexcept {
        int count = 0;
        while (count != max_items && count != most_at_once && files_->any_over()) {
            io_operation* const op = files_->take_over_one();
            if (op == nullptr) {
                break;
            }
            ++count;
            settle(*op, outcome_of(*op));
        }
        return count;
    }

    void cancel_on_file(readiness_slot const& s) noexcept {
        while (s.in_flight != 0) {
            io_operation* const op = files_->withdraw(s);
            if (op == nullptr) {
                break;
            }
            settle_later(*op, outcome_of(*op));
        }
    }

    outcome reap_ready(std::int64_t timeout, int max_items) noexcept {
        std::array<platform::poll_event, most_at_once> events;
        bool const bounded = max_items >= 0;
        auto const room =
            bounded ? std::min(events.size(), static_cast<std::size_t>(max_items)) : events.size();
        auto count = platform::os().poller_wait(poller_, events.data(), room, timeout);
        if (count == 1 && room == 1 && events[0].key() == platform::no_key) {
            // The one place was taken by what only ends the wait.
            count = platform::os().poller_wait(poller_, events.data(), room, 0);
        }
        if (count < 0) {
            return count;
        }
        // Each event can end two operations; beyond the bound the second is queued.
        int const before = (bounded ? max_items : INT_MAX) - static_cast<int>(count);
        int const outer = std::exchange(spare_, before);
        for (auto const& event : std::span(events.data(), static_cast<std::size_t>(count))) {
            handle_event(event);
        }
        return count + before - std::exchange(spare_, outer);
    }

    void handle_event(platform::poll_event const& event) noexcept {
        readiness_slot* const s = slots_.find(event.key());
        if (s == nullptr) [[unlikely]] {
            ++spare_;
            return;
        }
        std::uint32_t const ready = s->ready |= platform::implied(event.ready());
        io_operation* const reader = s->reader;
        // What servers do all the time: a coroutine waits, without a deadline, to read into one buffer.
        if (reader != nullptr && s->writer == nullptr && (ready & platform::readable) != 0 &&
            awaited_simple_read(*reader)) [[likely]] {
            auto const done = try_simple_read(*reader, *s);
            if (done != again) [[likely]] {
                s->reader = nullptr;
                return settle_awaited(*reader, done);
            }
            ++spare_;
            return;
        }
        handle_any(event.key(), *s);
    }

    [[gnu::noinline]] void handle_any(std::uint64_t key, readiness_slot& s) noexcept {
        ++spare_;
        bool const may_write = (s.ready & platform::writable) != 0 && s.writer != nullptr;
        if ((s.ready & platform::readable) != 0 && s.reader != nullptr) {
            finish(s.reader);
        }
        if (may_write) {
            // The reader's receiver may have closed the handle.
            readiness_slot* const still = slots_.find(key);
            if (still != nullptr && still->writer != nullptr) {
                finish(still->writer);
            }
        }
    }

    /// Does the i/o that waits, if it can be done.
    void finish(io_operation*& waiting) noexcept {
        io_operation& op = *waiting;
        auto const done = try_now(op);
        if (done == again) {
            return;
        }
        waiting = nullptr;
        if (spare_ == 0) {
            settle_later(op, done);
            return;
        }
        --spare_;
        settle(op, done);
    }

    void cancel_all(readiness_slot& s) noexcept {
        for (io_operation** const waiting : {&s.reader, &s.writer}) {
            if (*waiting != nullptr) {
                settle_later(*std::exchange(*waiting, nullptr),
                             platform::failed_with(std::errc::operation_canceled));
            }
        }
    }

    static void detach(handle_slot& h) noexcept {
        auto& s = static_cast<readiness_slot&>(h);
        visiting const here(s.multiplexer);
        if (s.multiplexer != nullptr) {
            auto& self = static_cast<readiness_backend&>(backend_of(*s.multiplexer));
            if (s.in_flight != 0) {
                self.check_driver();
                self.cancel_on_file(s);
            }
            if (s.reader != nullptr || s.writer != nullptr) {
                self.check_driver();
                self.cancel_all(s);
            }
            if (s.watched != 0) {
                platform::os().poller_remove(self.poller_, s.native);
            }
        }
        table::of(s).give_back(s);
    }

    static result<void> quiet(handle_slot& h) noexcept {
        auto const& s = static_cast<readiness_slot&>(h);
        visiting const here(s.multiplexer);
        if (s.reader != nullptr || s.writer != nullptr || s.in_flight != 0) {
            return make_error_code(error::busy);
        }
        return {};
    }

    static std::int64_t nothing_received(handle_slot&, buffers const&) noexcept { return again; }

    static constexpr handle_slot::functions functions{&detach, &quiet, &nothing_received};

    native_handle poller_;
    table& slots_;
    // How many more operations than there are events left may be settled this turn.
    int spare_ = 0;
    file_helpers::owner files_;  // once a file is registered
    bool files_last_ = false;
};

}  // namespace

result<std::unique_ptr<io_backend>> make_readiness_backend(io_multiplexer& owner) noexcept {
    auto const poller = platform::os().open_poller();
    if (poller < 0) {
        return platform::error_of(poller);
    }
    auto* const slots = slot_table<readiness_slot>::make();
    if (slots == nullptr) {
        platform::os().close_poller(poller);
        return std::make_error_code(std::errc::not_enough_memory);
    }
    std::unique_ptr<io_backend> made(new (std::nothrow) readiness_backend(owner, poller, *slots));
    if (made == nullptr) {
        slots->retire();
        platform::os().close_poller(poller);
        return std::make_error_code(std::errc::not_enough_memory);
    }
    return made;
}

}  // namespace plumb
