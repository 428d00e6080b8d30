// SPDX-License-Identifier: Apache-2.0
// The arithmetic of requests: lists of buffers, against the bytes that they name, and deadlines, against wide numbers.
#include <plumb/base/buffers.hpp>
#include <plumb/base/deadline.hpp>

#include "input.hpp"

#include <array>
#include <chrono>
#include <limits>
#include <vector>

using plumb::buffer;
using plumb::buffers;
using plumb::deadline;
using plumb::fuzz::check;
using plumb::fuzz::input;

namespace {

using addresses = std::vector<std::byte const*>;

addresses named_by(buffers const& list) {
    addresses all;
    std::size_t count = 0;
    for (buffer const b : list) {
        check(b.data() == list[count].data() && b.size() == list[count].size(),
              "iteration and access agree");
        ++count;
        for (std::size_t i = 0; i < b.size(); ++i) {
            all.push_back(b.data() + i);
        }
    }
    check(count == list.size(), "the size is the number of buffers");
    check(all.size() == list.bytes(), "the bytes are those of the buffers");
    return all;
}

void try_buffers(input& in) {
    static std::array<std::byte, 4096> memory;
    std::vector<buffer> array(in.take<std::uint8_t>() % 9);
    addresses model;
    for (buffer& b : array) {
        auto const at = in.take<std::uint8_t>();
        auto const size = in.take<std::uint8_t>() % 32u;
        b = buffer(memory.data() + at, size);
        for (std::size_t i = 0; i < size; ++i) {
            model.push_back(b.data() + i);
        }
    }
    buffers list(array);
    while (!in.empty()) {
        check(named_by(list) == model, "a list names the bytes of its array");
        auto const n = in.take<std::uint16_t>() % (model.size() + 3);
        if (in.take<std::uint8_t>() % 2 != 0) {
            buffers const whole = list.untrimmed();
            auto const all = named_by(whole);
            check(whole.trim_last() == 0 && all.size() <= model.size() &&
                      std::equal(all.begin(), all.end(), model.begin()),
                  "an untrimmed list is a start");
            check(list.trim_last() != 0 ? whole.size() < list.size() || list.empty() : all == model,
                  "all but the last buffer, where that is trimmed");
            addresses native;
            for (std::size_t i = 0; i < whole.native_count(); ++i) {
                buffer const& b = whole.native_array()[i];
                for (std::size_t k = 0; k < b.size(); ++k) {
                    native.push_back(b.data() + k);
                }
            }
            check(native == all, "the system gets the same bytes");
        } else {
            list = list.first(n);
            model.resize(std::min(model.size(), n));
        }
    }
}

template <class Clock, class Duration>
void try_deadline(std::int64_t count, std::int64_t now) {
    __extension__ using wide = __int128;
    constexpr wide most = std::numeric_limits<std::int64_t>::max();
    constexpr wide least = std::numeric_limits<std::int64_t>::min();
    using ratio = std::ratio_divide<typename Duration::period, std::nano>;
    wide const scaled = wide{count} * ratio::num;
    wide const exact = scaled / ratio::den + (scaled % ratio::den > 0 ? 1 : 0);
    // What is but one of these units from the ends of time may be taken for them.
    auto const is_that = [&](deadline const& d, wide expected) {
        wide const ns = d.nanoseconds();
        check(ns == std::clamp(expected, least, most) ||
                  (ns == most && expected > most - ratio::num) ||
                  (ns == least && expected < least + ratio::num),
              "ns are rounded up, and bounded");
        check(d.is_infinite() == (ns == most), "what is too far off has no end");
    };
    deadline const relative{Duration(count)};
    is_that(relative, std::max<wide>(exact, 0));
    if (now >= 0) {
        wide const due = relative.is_infinite() ? most : wide{relative.nanoseconds()} + now;
        check(relative.due_after(now) == static_cast<std::int64_t>(std::min(due, most)),
              "it is due that long after now");
    }
    is_that(deadline(std::chrono::time_point<Clock, Duration>(Duration(count))), exact);
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    input in(data, size);
    auto const count = in.take<std::int64_t>();
    auto const now = in.take<std::int64_t>();
    using std::chrono::duration;
    try_deadline<std::chrono::steady_clock, std::chrono::nanoseconds>(count, now);
    try_deadline<std::chrono::steady_clock, std::chrono::milliseconds>(count, now);
    try_deadline<std::chrono::system_clock, duration<std::int64_t, std::ratio<3600>>>(count, now);
    try_deadline<std::chrono::system_clock, duration<std::int64_t, std::pico>>(count, now);
    try_deadline<std::chrono::steady_clock, duration<std::int64_t, std::ratio<1, 3>>>(count, now);
    try_buffers(in);
    return 0;
}
