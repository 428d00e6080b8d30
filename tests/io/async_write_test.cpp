// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_write.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>
#include <csignal>
#include <string>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

class async_write_test : public on_every_backend {
protected:
    stream_socket_handle::pair tcp;
    record_of<async_write> written;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            tcp = tcp_pair();
        }
    }
    bool await_write() {
        return drive_until([&] { return written.done(); });
    }
    /// Writes until nothing more fits. @return how many bytes did
    std::size_t fill(io_handle& h, std::string const& block) {
        std::size_t total = 0;
        for (;;) {
            auto const w = h.try_write(bytes_of(block));
            if (!w) {
                EXPECT_EQ(w.error(), std::errc::timed_out);
                return total;
            }
            total += w.bytes_transferred();
        }
    }
};

INSTANTIATE_TEST_SUITE_P(backends, async_write_test, every_backend(), name_of_backend);

TEST_P(async_write_test, the_peer_reads_what_was_written) {
    std::string const text = "hello";
    auto operation = connect(async_write(tcp.first, bytes_of(text)), recorder(written));
    (void)operation.start();
    EXPECT_TRUE(written.untold());
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->bytes_transferred(), text.size());
    EXPECT_EQ((*written.value)->begin().operator*().data(), static_cast<void const*>(text.data()));
    std::array<std::byte, 16> memory;
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), text);
}

TEST_P(async_write_test, several_buffers_are_written_in_order) {
    std::string const a = "one ";
    std::string const b = "two";
    std::array<const_buffer, 2> const list{bytes_of(a), bytes_of(b)};
    auto operation = connect(async_write(tcp.first, const_buffers(list)), recorder(written));
    (void)operation.start();
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->bytes_transferred(), 7u);
    std::array<std::byte, 16> memory;
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), "one two");
}

TEST_P(async_write_test, nothing_beyond_a_trimmed_list_is_written) {
    std::string const a = "abc";
    std::string const b = "defg";
    std::array<const_buffer, 2> const list{bytes_of(a), bytes_of(b)};
    auto operation =
        connect(async_write(tcp.first, const_buffers(list).first(5)), recorder(written));
    (void)operation.start();
    ASSERT_TRUE(await_write());
    auto const moved = written.value->bytes_transferred();
    EXPECT_GE(moved, 1u);
    EXPECT_LE(moved, 5u);
    ASSERT_TRUE(tcp.first.shutdown_write());
    std::array<std::byte, 16> memory;
    EXPECT_EQ(text_of(tcp.second.read(buffer(memory), patience)), std::string("abcdefg", moved));
}

TEST_P(async_write_test, an_empty_request_completes_at_once_with_no_bytes) {
    auto operation = connect(async_write(tcp.first, const_buffer()), recorder(written));
    EXPECT_EQ(operation.start(), io_status::completed);
    ASSERT_TRUE(await_write());
    ASSERT_TRUE(*written.value);
    EXPECT_EQ(written.value->bytes_transferred(), 0u);
}

TEST_P(async_write_test, short_writes_keep_their_order_to_a_slow_reader) {
    std::string all(4 << 20, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<char>(i * 31 + i / 4096);
    }
    std::size_t sent = 0;
    std::string received;
    std::vector<std::byte> memory(8192);
    record_of<async_read> read;
    while (received.size() < all.size()) {
        if (sent < all.size()) {
            written = {};
            auto write =
                connect(async_write(tcp.first, bytes_of(all).skip(sent), 1h), recorder(written));
            (void)write.start();
            while (!written.done()) {
                read = {};
                auto drain = connect(async_read(tcp.second, buffer(memory)), recorder(read));
                (void)drain.start();
                ASSERT_TRUE(drive_until([&] { return read.done() || written.done(); }));
                drain.cancel();
                ASSERT_TRUE(drive_until([&] { return read.done(); }));
                received += text_of(*read.value);
            }
            ASSERT_TRUE(*written.value) << written.value->error().message();
            sent += written.value->bytes_transferred();
        } else {
            auto const r = tcp.second.read(buffer(memory), patience);
            ASSERT_TRUE(r && r.bytes_transferred() != 0);
            received += text_of(r);
        }
    }
    EXPECT_EQ(received.size(), all.size());
    EXPECT_TRUE(received == all) << "bytes changed their order";
}

TEST_P(async_write_test, waits_while_the_peer_does_not_read) {
    auto pair = socket_pair();
    std::string const block(64 << 10, 'x');
    ASSERT_GT(fill(pair.first, block), 0u);
    auto operation = connect(async_write(pair.first, bytes_of(block)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    EXPECT_TRUE(written.untold());
    std::vector<std::byte> memory(64 << 10);
    while (!written.done()) {
        ASSERT_TRUE(pair.second.read(buffer(memory), patience).bytes_transferred() != 0);
        settle();
    }
    EXPECT_GT(written.value->bytes_transferred(), 0u);
}

TEST_P(async_write_test, is_timed_out_while_the_peer_does_not_read) {
    auto pair = socket_pair();
    std::string const block(64 << 10, 'x');
    fill(pair.first, block);
    auto const before = now();
    auto operation = connect(async_write(pair.first, bytes_of(block), 20ms), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->error(), std::errc::timed_out);
    EXPECT_GE(now() - before, 20ms);
}

TEST_P(async_write_test, a_second_writer_is_told_that_the_handle_is_busy) {
    auto pair = socket_pair();
    std::string const block(64 << 10, 'x');
    fill(pair.first, block);
    record_of<async_write> second;
    auto operation = connect(async_write(pair.first, bytes_of(block)), recorder(written));
    auto late = connect(async_write(pair.first, bytes_of(block)), recorder(second));
    ASSERT_EQ(operation.start(), io_status::pending);
    (void)late.start();
    ASSERT_TRUE(drive_until([&] { return second.done(); }));
    EXPECT_EQ(second.value->error(), std::errc::device_or_resource_busy);
    EXPECT_TRUE(written.untold());
    operation.cancel();
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->error(), std::errc::operation_canceled);
}

TEST_P(async_write_test, the_try_forms_are_those_of_the_blocking_call) {
    auto pair = socket_pair();
    std::string const block(64 << 10, 'x');
    fill(pair.first, block);
    for (auto const& sender :
         {async_write::try_async_write(pair.first, bytes_of(block)),
          async_write::try_async_write_for(pair.first, bytes_of(block), 20ms),
          async_write::try_async_write_until(pair.first, bytes_of(block), now() + 20ms)}) {
        written = {};
        auto operation = connect(sender, recorder(written));
        (void)operation.start();
        ASSERT_TRUE(await_write());
        EXPECT_EQ(written.value->error(), std::errc::timed_out);
    }
}

TEST_P(async_write_test, a_reset_in_mid_write_is_an_error) {
    std::string const block(64 << 10, 'x');
    fill(tcp.first, block);
    auto operation = connect(async_write(tcp.first, bytes_of(block)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    ASSERT_TRUE(tcp.second.set_reset_on_close());
    ASSERT_TRUE(tcp.second.close());
    ASSERT_TRUE(await_write());
    while (*written.value) {  // a probe had found room before the reset came
        written = {};
        operation.reset();
        (void)operation.start();
        ASSERT_TRUE(await_write());
    }
    EXPECT_TRUE(written.value->error() == std::errc::connection_reset ||
                written.value->error() == std::errc::broken_pipe)
        << written.value->error().message();
}

TEST_P(async_write_test, closing_the_handle_ends_the_write_as_canceled) {
    auto pair = socket_pair();
    std::string const block(64 << 10, 'x');
    fill(pair.first, block);
    auto operation = connect(async_write(pair.first, bytes_of(block)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    EXPECT_TRUE(pair.first.close());
    EXPECT_TRUE(written.untold());
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->error(), std::errc::operation_canceled);
}

TEST_P(async_write_test, destroyed_while_pending_it_tells_nobody) {
    auto pair = socket_pair();
    std::string const block(64 << 10, 'x');
    fill(pair.first, block);
    {
        auto operation = connect(async_write(pair.first, bytes_of(block)), recorder(written));
        ASSERT_EQ(operation.start(), io_status::pending);
        settle();
    }
    settle();
    EXPECT_TRUE(written.untold());
    EXPECT_EQ(multiplexer().try_run().value(), 0);
}

bool sigpipe_seen;

class sigpipe_watch {
public:
    sigpipe_watch() {
        sigpipe_seen = false;
        before_ = std::signal(SIGPIPE, [](int) { sigpipe_seen = true; });
    }
    ~sigpipe_watch() { std::signal(SIGPIPE, before_); }

private:
    void (*before_)(int);
};

TEST_P(async_write_test, a_socket_whose_peer_is_gone_raises_no_signal) {
    sigpipe_watch const watch;
    ASSERT_TRUE(tcp.second.set_reset_on_close());
    ASSERT_TRUE(tcp.second.close());
    std::string const text = "nobody";
    for (int i = 0; i < 3; ++i) {
        written = {};
        auto operation = connect(async_write(tcp.first, bytes_of(text)), recorder(written));
        (void)operation.start();
        ASSERT_TRUE(await_write());
    }
    EXPECT_EQ(written.value->error(), std::errc::broken_pipe);
    EXPECT_FALSE(sigpipe_seen);
}

TEST_P(async_write_test, a_pipe_without_reader_raises_no_signal) {
    sigpipe_watch const watch;
    auto ends = pipe();
    std::string const text = "nobody";
    ASSERT_TRUE(ends.reader.close());
    auto operation = connect(async_write(ends.writer, bytes_of(text)), recorder(written));
    (void)operation.start();
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->error(), std::errc::broken_pipe);
    EXPECT_FALSE(sigpipe_seen);
}

TEST_P(async_write_test, a_pipe_whose_reader_leaves_ends_the_write_without_a_signal) {
    sigpipe_watch const watch;
    auto ends = pipe();
    std::string const block(64 << 10, 'x');
    fill(ends.writer, block);
    auto operation = connect(async_write(ends.writer, bytes_of(block)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    settle();
    ASSERT_TRUE(ends.reader.close());
    ASSERT_TRUE(await_write());
    EXPECT_EQ(written.value->error(), std::errc::broken_pipe);
    EXPECT_FALSE(sigpipe_seen);
}

TEST_P(async_write_test, a_full_pipe_goes_on_when_it_is_read) {
    auto ends = pipe();
    std::string const block(64 << 10, 'x');
    auto total = fill(ends.writer, block);
    auto operation = connect(async_write(ends.writer, bytes_of(block)), recorder(written));
    ASSERT_EQ(operation.start(), io_status::pending);
    std::vector<std::byte> memory(total);
    while (total != 0) {
        auto const r = ends.reader.read(buffer(memory), patience);
        ASSERT_TRUE(r);
        total -= std::min(total, r.bytes_transferred());
    }
    ASSERT_TRUE(await_write());
    EXPECT_GT(written.value->bytes_transferred(), 0u);
}

}  // namespace
}  // namespace plumb::test
