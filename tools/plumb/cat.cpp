// SPDX-License-Identifier: Apache-2.0
#include "cat.hpp"

#include <plumb/aio/run.hpp>
#include <plumb/handle/file_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/cancellation.hpp>
#include <plumb/task/when_all.hpp>
#include <plumb/task/with_stop.hpp>

#include "multiplexer_choice.hpp"
#include "tell.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace plumb;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t at_once = 256 * 1024;
/// What fits into one packet of most networks.
constexpr std::size_t message = 1400;
constexpr std::size_t largest_message = 65536;
constexpr extent_type of_a_file_at_once = 64 << 20;
constexpr auto grace = 1s;

std::string in_units(double bytes) {
    char const* unit = "B";
    for (char const* const larger : {"KiB", "MiB", "GiB", "TiB"}) {
        if (bytes < 1024) {
            break;
        }
        bytes /= 1024;
        unit = larger;
    }
    return fmt::format("{:.{}f} {}", bytes, *unit == 'B' ? 0 : 1, unit);
}

bool go_both_ways(cat_options const& options) {
    using kind = cat_address::kind_type;
    bool const is_standard =
        options.first.kind == kind::standard && options.second.kind == kind::standard;
    return !options.one_way && !is_standard && options.first.has_two_ways() &&
           options.second.has_two_ways();
}

}  // namespace

cat::cat(cat_options const& options)
    : signal_work([](signal_work& w) noexcept { static_cast<cat&>(w).stop(); }),
      options_(options),
      two_ways_(go_both_ways(options)),
      first_(options.first, true, two_ways_),
      second_(options.second, false, two_ways_),
      context_(make_multiplexer(options.multiplexer)),
      reads_(context_.get_executor()),
      writes_(context_.get_executor()),
      rest_(context_.get_executor()) {}

bool cat::run() {
    aio::run(context_, main());
    return !interrupted_;
}

void cat::stop() noexcept {
    reads_.request_stop();
    if (open_) {
        async_run(context_.get_executor(), cut_off(), rest_.token());
    } else {
        writes_.request_stop();
    }
}

task<> cat::cut_off() {
    auto const over = co_await co_wait(grace);
    if (over) {
        writes_.request_stop();
    }
}

task<> cat::main() {
    std::exception_ptr failure;
    try {
        co_await connect();
        co_await copy_all();
    } catch (...) {
        failure = std::current_exception();
    }
    rest_.request_stop();
    if (shown_) {
        show("\n");
    }
    bool const cancelled = is_cancellation(failure);
    if (stopping_ && !open_ && cancelled) {
        interrupted_ = true;
        co_return;
    }
    // Reads that it has cut off fail nothing, writes do.
    if (idle_ && (failure ? cancelled : to_end_ != 0)) {
        auto const seconds = std::chrono::duration<double>(options_.timeout).count();
        throw std::runtime_error(fmt::format("nothing has moved for {} s", seconds));
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

task<> cat::connect() {
    auto const limit =
        options_.timeout == 0s ? deadline() : deadline(clock::now() + options_.timeout);
    co_await with_stop(reads_.token(), open(limit));
    first_.refuse_same_file(second_);
    second_.make_empty();
    open_ = true;
}

/// A peer is not called before there is one to talk to it.
task<> cat::open(deadline limit) {
    if (first_.calls() && second_.is_called()) {
        co_await second_.open(limit);
        co_await first_.open(limit);
    } else if (first_.is_called() && second_.calls()) {
        co_await first_.open(limit);
        co_await second_.open(limit);
    } else {
        co_await when_all(first_.open(limit), second_.open(limit));
    }
}

task<> cat::copy_all() {
    using progress = cat_options::progress_type;
    bool const on_terminal = ::isatty(STDERR_FILENO) != 0 && !first_.writes_to_terminal() &&
                             !second_.writes_to_terminal();
    shown_ = options_.progress == progress::always ||
             (options_.progress == progress::automatic && on_terminal);
    auto const& here = context_.get_executor();
    if (shown_) {
        async_run(here, show_progress(), rest_.token());
    }
    if (options_.timeout != 0s) {
        last_moved_ = clock::now();
        async_run(here, end_when_idle(), rest_.token());
    }
    std::vector<task<>> directions;
    directions.push_back(first_.is_file() && second_.is_file() ? copy_file()
                                                               : copy(first_, second_));
    if (two_ways_) {
        directions.push_back(copy(second_, first_));
    }
    auto all = when_all(std::move(directions));
    co_await with_stop(reads_.token(), std::move(all));
}

/// In one direction. A failure ends the other one too: at once where that reads, after the grace where it writes.
task<> cat::copy(cat_side& from, cat_side& to) {
    try {
        co_await copy_to_end(from, to);
    } catch (...) {
        async_run(context_.get_executor(), cut_off(), rest_.token());
        throw;
    }
}

/// Until its input ends.
task<> cat::copy_to_end(cat_side& from, cat_side& to) {
    std::size_t const size = from.has_datagrams() ? largest_message
                             : to.has_datagrams() ? message
                                                  : at_once;
    auto const room = std::make_unique_for_overwrite<std::byte[]>(size);
    int const ends = from.has_datagrams() ? 0 : 1;
    to_end_ += ends;
    auto const first = from.take_first();
    if (!first.empty()) {
        co_await write(to, const_buffer(first));
    }
    for (;;) {
        auto const got = co_await from.read(buffer(room.get(), size));
        if (!got) {
            if (got.error() == std::errc::operation_canceled && (stopping_ || idle_)) {
                interrupted_ = stopping_;
                break;
            }
            from.fail("read from", got.error());
        }
        if (got.bytes_transferred() != 0) {
            co_await write(to, const_buffer(room.get(), got.bytes_transferred()));
        } else if (!from.has_datagrams()) {
            break;
        }
    }
    to_end_ -= idle_ ? 0 : ends;
    to.end_writing();
    if (!two_ways_ && !stopping_) {
        co_await with_stop(writes_.token(), to.await_close(clock::now() + grace));
    }
}

task<> cat::write(cat_side& to, const_buffer bytes) {
    while (!bytes.empty()) {
        auto const done = co_await with_stop(writes_.token(), to.writer()->co_write(bytes));
        if (!done) {
            to.fail("write to", done.error());  // also what a stop has cut off
        }
        bytes = bytes.skip(done.bytes_transferred());
        moved(done.bytes_transferred());
    }
}

/// The system copies, or lets both share the space. What it can't is read and written: files that don't tell their
/// size, and what was added meanwhile.
task<> cat::copy_file() {
    auto from = first_.file();
    auto to = second_.file();
    extent_type at = 0;
    while (!stopping_) {
        auto const copied = from.clone_extents(at, of_a_file_at_once, to, at);
        if (!copied && copied.error() != error::end_of_stream) {
            second_.fail("copy to", copied.error());
        }
        if (!copied || *copied == 0) {
            break;
        }
        at += *copied;
        moved(*copied);
        (void)co_await co_wait(1ns);  // for the signals and the progress
    }
    first_.go_to(at);
    second_.go_to(at);
    co_await copy(first_, second_);
}

void cat::moved(std::uint64_t bytes) noexcept {
    bytes_ += bytes;
    if (options_.timeout != 0s) {
        last_moved_ = clock::now();
    }
}

task<> cat::end_when_idle() {
    for (;;) {
        auto const end = last_moved_ + options_.timeout;
        if (clock::now() >= end) {
            break;
        }
        if (auto const waited = co_await co_wait(end); !waited) {
            co_return;
        }
    }
    idle_ = true;
    reads_.request_stop();
    writes_.request_stop();
}

task<> cat::show_progress() {
    while (auto const waited = co_await co_wait(200ms)) {
        show("");
    }
}

void cat::show(char const* end) const {
    auto const seconds = std::chrono::duration<double>(clock::now() - start_).count();
    tell("\r{}, {}/s   {}", in_units(static_cast<double>(bytes_)),
         in_units(static_cast<double>(bytes_) / std::max(seconds, 1e-9)), end);
}
