// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/stream.hpp>

#include <plumb/aio/incomplete.hpp>
#include <plumb/base/error.hpp>
#include <plumb/io/async_read.hpp>

#include "platform/seam.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace plumb::aio {
namespace {

constexpr std::size_t least_room = 4096;

}  // namespace

deadline stream::for_all_of_it(deadline limit) noexcept {
    if (!limit.is_relative() || limit.is_zero()) {
        return limit;
    }
    auto const due = limit.due_after(platform::os().steady_now());
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due));
}

/// Reads once behind what is kept. @return how many bytes came, 0 at the end of the stream
task<std::size_t> stream::fill(std::size_t room, deadline limit) {
    if (kept_.empty()) {
        kept_ = co_await read(std::max(room, least_room), limit);
        co_return kept_.size();
    }
    if (kept_.room().size() < std::min(room, least_room)) {
        // What a peer announces is not yet there: no more than doubles.
        std::size_t const more = std::min(room, std::max(kept_.size(), pooled_memory_limit));
        auto larger = bytes::with_capacity(kept_.size() + std::max(more, kept_.size()));
        if (larger.capacity() == 0) {
            throw std::bad_alloc();
        }
        std::memcpy(larger.data(), kept_.data(), kept_.size());
        larger.grow(kept_.size());
        kept_ = std::move(larger);
    }
    auto const got = co_await socket_.co_read(kept_.room(), limit);
    if (!got) {
        throw_error(got.error(), "stream::read");
    }
    kept_.grow(got.bytes_transferred());
    co_return got.bytes_transferred();
}

bytes stream::take(std::size_t count) {
    if (count >= kept_.size()) {
        return std::exchange(kept_, bytes());
    }
    auto taken = bytes::with_capacity(count);
    if (taken.capacity() != count) {
        throw std::bad_alloc();
    }
    if (count != 0) {
        std::memcpy(taken.data(), kept_.data(), count);
    }
    taken.grow(count);
    kept_.remove_prefix(count);
    return taken;
}

task<bytes> stream::read(deadline limit, std::size_t most) {
    limit = for_all_of_it(limit);
    for (;;) {
        std::size_t const came = co_await fill(std::max(least_room, kept_.size()), limit);
        if (came == 0) {
            co_return take(kept_.size());
        }
        if (kept_.size() > most) {
            throw_error(error::limit_exceeded, "stream::read");
        }
    }
}

task<bytes> stream::read_exactly(std::size_t count, deadline limit) {
    limit = for_all_of_it(limit);
    while (kept_.size() < count) {
        std::size_t const before = kept_.size();
        std::error_code failure;
        try {
            std::size_t const came = co_await fill(count - before, limit);
            if (came == 0) {
                failure = error::end_of_stream;
            }
        } catch (std::system_error const& e) {
            failure = e.code();
        }
        if (failure) {
            throw incomplete(failure, "stream::read_exactly", before, count);
        }
    }
    co_return take(count);
}

task<bytes> stream::read_until(std::string_view separator, deadline limit, std::size_t most) {
    require(!separator.empty(), "stream::read_until: the separator is empty");
    limit = for_all_of_it(limit);
    std::size_t searched = 0;
    for (;;) {
        auto const found = kept_.view().find(separator, searched);
        if (found != std::string_view::npos && found + separator.size() <= most) {
            co_return take(found + separator.size());
        }
        if (kept_.size() >= most) {
            throw_error(error::limit_exceeded, "stream::read_until");
        }
        searched = kept_.size() < separator.size() ? 0 : kept_.size() - separator.size() + 1;
        std::size_t const came = co_await fill(least_room, limit);
        if (came == 0) {
            throw incomplete(error::end_of_stream, "stream::read_until", kept_.size(), 0);
        }
    }
}

void stream::write_eof() { socket_.shutdown_write().value(); }

io_status write_awaitable::write_rest() noexcept {
    auto const rest = write_request().begin().operator*().skip(static_cast<std::size_t>(outcome()));
    rearm(rest);
    return start_awaited<action::write>(waiting(), env());
}

void write_awaitable::deliver(io_operation& part) noexcept {
    auto& self = static_cast<write_awaitable&>(static_cast<async_write::operation&>(part));
    if (self.go_on(io_status::completed) == io_status::completed) {
        self.env().executor.dispatch(self.waiting()).resume();
    }
}

void write_awaitable::fail() const {
    if (left_ != all_) {
        throw incomplete(error(), "stream::write", all_ - left_, all_);
    }
    throw_error(error(), "stream::write");
}

}  // namespace plumb::aio
