// SPDX-License-Identifier: Apache-2.0
//
// The code of docs/d2052.md: what stands there is what stands here between `d2052: <name>` and the end of it, which
// tests/tools/d2052_test.py compares.
#include <plumb/handle/file_handle.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/io_multiplexer.hpp>
#include <plumb/io/io_operation_connection.hpp>
#include <plumb/task/task.hpp>

#include "support/context.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// Of the standard output, while it lives.
class captured_output {
public:
    captured_output() : before_(std::cout.rdbuf(text_.rdbuf())) {}
    captured_output(captured_output const&) = delete;
    captured_output& operator=(captured_output const&) = delete;
    ~captured_output() { std::cout.rdbuf(before_); }
    [[nodiscard]] std::size_t lines() const {
        std::string const text = text_.str();
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }

private:
    std::ostringstream text_;
    std::streambuf* before_;
};

TEST(d2052_file_test, reads_the_whole_of_a_file) {
    temporary_directory const place;
    make_file(place / "foo", "some text");
    auto const base = path_handle::directory(place.path()).value();

    // d2052: file
    // Opens the file: by default to read what exists, with all that the system caches
    plumb::file_handle fh = plumb::file(base,   // a path_handle; {} for the working directory
                                        "foo")  // a path_view, relative to it
                                .value();       // throws where that failed

    // Room for what the file holds now
    std::vector<std::byte> room(fh.maximum_extent().value());

    // What to fill, and from where in the file
    plumb::file_handle::buffer_type const b(room.data(), room.size());
    plumb::io_request<plumb::file_handle::buffers_type> const request(b, 0);

    // Reads
    plumb::file_handle::buffers_type const filled = fh.read(request).value();

    // Somebody else may have made the file shorter meanwhile
    room.resize(filled.bytes());
    // d2052: end

    EXPECT_EQ(text_of(plumb::io_result<buffers>(buffer(room))), "some text");
}

// d2052: coroutine
plumb::task<std::error_code> read_all(plumb::pipe_handle& read_pipe, std::size_t& bytes) {
    std::array<std::byte, 64> room;
    plumb::pipe_handle::buffer_type const buffer(room);
    for (;;) {
        // Where the coroutine is asked to stop this gives operation_canceled
        plumb::io_result<plumb::pipe_handle::buffers_type> const r =
            co_await read_pipe.co_read({buffer, 0});  // with the arguments of read()
        if (!r) {
            co_return r.error();
        }
        if (r->empty()) {
            co_return std::error_code();  // the end of the stream
        }
        bytes += r.bytes_transferred();
    }
}
// d2052: end

class d2052_test : public on_every_context {};

INSTANTIATE_TEST_SUITE_P(backends, d2052_test, every_backend(), name_of_backend);

TEST_P(d2052_test, a_coroutine_reads_a_pipe_to_its_end) {
    auto ends = pipe_handle::anonymous_pipe().value();
    std::size_t bytes = 0;
    std::optional<std::error_code> ended;
    async_run(executor(), read_all(ends.reader, bytes), {},
              [&](task_result<std::error_code>& r) { ended = r.take(); });
    context()
        .multiplexer()
        .post([&] {
            EXPECT_TRUE(ends.writer.write(std::string_view("some")));
            (void)context().multiplexer().post([&] {
                EXPECT_TRUE(ends.writer.write(std::string_view("text")));
                (void)ends.writer.close();
            });
        })
        .value();
    on_every_context::run();
    ASSERT_TRUE(ended);
    EXPECT_FALSE(*ended);
    EXPECT_EQ(bytes, 8u);
}

// d2052: receiver
// Is told of the read of a pipe
struct pipe_read_receiver {
    std::size_t idx = 0;

    void set_value(plumb::io_result<plumb::pipe_handle::buffers_type>&& filled) noexcept {
        std::cout << "Pipe " << idx << " read " << filled.bytes_transferred() << " bytes.\n";
    }

    void set_done() noexcept { /* do nothing */ }
};
// d2052: end

TEST_P(d2052_test, many_pipes_are_read_by_polling_by_complete_io_and_by_run) {
    constexpr std::size_t N = 32;
    std::vector<pipe_handle> writers;
    std::array<std::array<std::byte, 8>, N> memory;

    // d2052: connect
    // Many pipes, each with a buffer to be filled
    std::array<std::pair<plumb::pipe_handle, plumb::pipe_handle::buffer_type>, N> pipes;
    // d2052: end

    for (std::size_t n = 0; n < N; ++n) {
        auto ends = pipe();
        pipes[n] = {std::move(ends.reader), buffer(memory[n])};
        writers.push_back(std::move(ends.writer));
    }
    auto const write_all = [&] {
        for (pipe_handle& w : writers) {
            EXPECT_TRUE(w.write(std::string_view("x")));
        }
    };
    captured_output const output;

    // d2052: connect
    // Connects the reads of all pipes with their receivers
    using connection = plumb::io_operation_connection<plumb::async_read, pipe_read_receiver>;
    std::array<std::optional<connection>, N> connections;
    for (std::size_t n = 0; n < N; n++) {
        connections[n].emplace(plumb::async_read(pipes[n].first,    // the handle to read
                                                 {pipes[n].second,  // the buffer to fill
                                                  0}),              // where; pipes ignore it
                               pipe_read_receiver{n});
    }

    // Begins to read all pipes
    for (auto& c : connections) {
        c->start();
    }
    // d2052: end

    write_all();
    {
        // d2052: poll
        // Polls all pipes until each has read something, or has failed to
        bool done;
        do {
            done = true;
            for (auto& c : connections) {
                if (c->poll() != plumb::io_status::completed) {
                    done = false;
                }
            }
        } while (!done);
        // d2052: end
    }
    EXPECT_EQ(output.lines(), N);

    auto const again = [&] {
        // d2052: again
        // The same operations once more
        for (auto& c : connections) {
            c->reset();
            c->start();
        }
        // d2052: end
        write_all();
    };
    again();
    {
        // d2052: complete_io
        // Lets the multiplexer find those that are ready, without waiting
        std::size_t done = 0;
        while (done < N) {
            int const completed = pipes[0].first.multiplexer()->complete_io().value();
            if (completed > 0) {  // negative where none is ready
                done += static_cast<std::size_t>(completed);
            }
        }
        // d2052: end
    }
    EXPECT_EQ(output.lines(), 2 * N);

    again();
    {
        // d2052: run
        // The same, asleep until some are ready
        std::size_t done = 0;
        while (done < N) {
            int const completed = pipes[0].first.multiplexer()->run().value();
            if (completed > 0) {
                done += static_cast<std::size_t>(completed);
            }
        }
        // d2052: end
    }
    EXPECT_EQ(output.lines(), 3 * N);
}

TEST_P(d2052_test, blocking_reads_take_deadlines) {
    auto ends = pipe_handle::anonymous_pipe().value();
    plumb::pipe_handle& read_pipe = ends.reader;
    std::array<std::byte, 8> room;
    plumb::buffer const b(room);
    auto const soon = plumb::io_multiplexer::steady_now() + 2ms;

    captured_output const output;

    // d2052: deadlines
    plumb::io_result<plumb::buffers> const results[] = {
        read_pipe.read(b, 1ms),   // relative
        read_pipe.read(b, soon),  // absolute, of the steady or the system clock
        read_pipe.try_read(b),    // without waiting
        read_pipe.try_read_for(b, 1ms), read_pipe.try_read_until(b, soon),
    };
    for (auto const& r : results) {
        if (!r && r.error() == std::errc::timed_out) {
            std::cout << "nothing came in time\n";
        }
    }
    // d2052: end

    EXPECT_EQ(output.lines(), std::size(results));
}

TEST_P(d2052_test, the_multiplexer_runs_what_is_posted) {
    plumb::io_multiplexer& multiplexer = on_every_backend::multiplexer();
    int ran = 0;

    // d2052: post
    // From any thread
    multiplexer.post([&] { ++ran; }).value();

    // All of it, or at most so many, or for so long
    int invoked = multiplexer.invoke_posted_items().value();
    invoked += multiplexer.invoke_posted_items(1).value();
    invoked += multiplexer.invoke_posted_items_within(1ms, 1).value();

    // Completes i/o, ends what is over at its deadline, runs what is posted; waits until there is something
    multiplexer.post([&] { ++ran; }).value();
    int processed = multiplexer.run().value();
    processed += multiplexer.try_run().value();         // doesn't wait
    processed += multiplexer.try_run_for(1ms).value();  // waits no longer than that
    // d2052: end

    EXPECT_EQ(ran, 2);
    EXPECT_EQ(invoked, 1);
    EXPECT_EQ(processed, 1);
}

}  // namespace
}  // namespace plumb::test
