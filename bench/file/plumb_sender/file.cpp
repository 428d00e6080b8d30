// SPDX-License-Identifier: Apache-2.0
//
// plumb's senders. One in flight is started and polled, as where one waits for it; of several each one's end starts the
// next, inside of the multiplexer's run. Copying reads and writes chunks, several at a time.
#include "../file.h"

#include <plumb/handle/file_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include <algorithm>
#include <deque>
#include <optional>

namespace {

using plumb::io_status;

plumb::file_handle file;
file_places places;
file_meter meter;

/// One of the reads in flight.
class reader {
public:
    void start() {
        reading_.emplace(plumb::connect(
            plumb::async_read(file, {memory_, file_next_place(&places)}), receiver{this}));
        (void)reading_->start();
    }
    void finish() {
        while (reading_->poll() == io_status::pending) {
            (void)plumb::io_multiplexer::this_thread().run();
        }
    }
    static inline bool goes_on = false;

private:
    struct receiver {
        reader* self;
        void set_value(plumb::io_result<plumb::buffers>&& got) noexcept {
            if (got.bytes_transferred() != file_block) {
                file_fail("read");
            }
        }
        void set_done() noexcept {
            if (goes_on && (goes_on = file_count(&meter) != 0)) {
                self->start();
            }
        }
    };

    plumb::buffer const memory_{file_memory(file_block), file_block};
    std::optional<plumb::io_operation_connection<plumb::async_read, receiver>> reading_;
};

/// One of the chunks on their way: read, written, then the next.
class chunk {
public:
    static inline plumb::file_handle to;
    static inline std::uint64_t next = 0;
    static inline std::uint64_t end = 0;

    void start() {
        at_ = next;
        size_ = std::min<std::uint64_t>(file_chunk, end - next);
        if (size_ != 0) {
            next += size_;
            reading_.emplace(plumb::connect(
                plumb::async_read(file, {plumb::buffer(memory_, size_), at_}), read_end{this}));
            (void)reading_->start();
        }
    }

private:
    void write() {
        writing_.emplace(plumb::connect(
            plumb::async_write(to, {plumb::const_buffer(memory_, size_), at_}), write_end{this}));
        (void)writing_->start();
    }
    void check(std::size_t moved) const {
        if (moved != size_) {
            file_fail("copy");
        }
    }
    struct read_end {
        chunk* self;
        void set_value(plumb::io_result<plumb::buffers>&& got) noexcept {
            self->check(got.bytes_transferred());
        }
        void set_done() noexcept { self->write(); }
    };
    struct write_end {
        chunk* self;
        void set_value(plumb::io_result<plumb::const_buffers>&& got) noexcept {
            self->check(got.bytes_transferred());
        }
        void set_done() noexcept { self->start(); }
    };

    void* const memory_ = file_memory(file_chunk);
    std::uint64_t at_ = 0;
    std::size_t size_ = 0;
    std::optional<plumb::io_operation_connection<plumb::async_read, read_end>> reading_;
    std::optional<plumb::io_operation_connection<plumb::async_write, write_end>> writing_;
};

int copy(file_options const& options) {
    using plumb::file_handle;
    std::deque<chunk> chunks(2);
    auto const began = file_now();
    file = plumb::file({}, options.path).value();
    chunk::end = file.maximum_extent().value();
    chunk::to =
        plumb::file({}, options.copy, file_handle::mode::write, file_handle::creation::create_new)
            .value();
    for (auto& each : chunks) {
        each.start();
    }
    while (plumb::io_multiplexer::this_thread().run().value() != 0) {
    }
    chunk::to.close().value();
    file.close().value();
    file_report_copy(began);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    file_options const options = file_parse_options(argc, argv);
    if (*options.multiplexer != '\0') {
        setenv("PLUMB_MULTIPLEXER", options.multiplexer, 1);
    }
    if (options.copy != nullptr) {
        return copy(options);
    }
    places = file_places_of(&options);
    using caching = plumb::file_handle::caching;
    file = plumb::file({}, options.path, plumb::file_handle::mode::read,
                       plumb::file_handle::creation::open_existing,
                       options.direct != 0 ? caching::none : caching::all)
               .value();
    std::deque<reader> readers(static_cast<std::size_t>(options.in_flight));
    meter = file_meter_of(&options);
    if (options.in_flight == 1) {
        do {
            readers.front().start();
            readers.front().finish();
        } while (file_count(&meter) != 0);
    } else {
        reader::goes_on = true;
        for (auto& each : readers) {
            each.start();
        }
        while (plumb::io_multiplexer::this_thread().run().value() != 0) {
        }
    }
    file_report(&meter);
    readers.clear();
    (void)file.close();
}
