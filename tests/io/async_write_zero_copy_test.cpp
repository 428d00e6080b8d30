// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_write_zero_copy.hpp>

#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

/// Bytes that tell where they belong.
std::string pattern(std::size_t size) {
    std::string made(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        made[i] = static_cast<char>('a' + i % 23 + i / 4096 % 3);
    }
    return made;
}

class async_write_zero_copy_test : public on_every_backend {
protected:
    stream_socket_handle::pair tcp;
    std::string const text = pattern(64 * 1024);
    record_of<async_write_zero_copy> written;

    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            tcp = tcp_pair();
        }
    }
    [[nodiscard]] bool by_ring() const noexcept { return GetParam() == multiplexer_kind::io_uring; }
    /// Whether the kernel holds the buffer of what was written last.
    [[nodiscard]] bool held() const noexcept { return written.values > written.dones; }
    auto writing(std::string const& what, deadline limit = {}) {
        return connect(async_write_zero_copy(tcp.first, bytes_of(what), limit), recorder(written));
    }
    /// Reads so many bytes from the other end, driving the multiplexer meanwhile.
    std::string receive(std::size_t size) {
        std::string all;
        std::vector<std::byte> memory(16 * 1024);
        auto const end = now() + patience;
        while (all.size() < size && now() < end) {
            auto r = tcp.second.try_read_for(buffer(memory), 1ms);
            if (r) {
                all += text_of(r);
            }
            (void)multiplexer().try_run();
        }
        return all;
    }
    /// Writes until the peer takes no more, so that the kernel holds what was written last.
    std::unique_ptr<decltype(connect(async_write_zero_copy(tcp.first, const_buffer()),
                                     recorder(written)))>
    write_until_held(std::size_t& total) {
        for (;;) {
            auto made = std::make_unique<decltype(writing(text))>(writing(text, 50ms));
            written = {};
            (void)made->start();
            EXPECT_TRUE(drive_until([&] { return written.values != 0; }));
            if (!*written.value) {
                return nullptr;
            }
            total += written.value->bytes_transferred();
            settle();
            if (held()) {
                return made;
            }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(backends, async_write_zero_copy_test, every_backend(), name_of_backend);

TEST_P(async_write_zero_copy_test, moves_the_bytes_and_gives_the_buffer_back) {
    auto operation = writing(text);
    (void)operation.start();
    EXPECT_TRUE(written.untold());
    ASSERT_TRUE(drive_until([&] { return written.values != 0; }));
    ASSERT_TRUE(*written.value) << written.value->error().message();
    std::size_t const moved = written.value->bytes_transferred();
    EXPECT_GT(moved, 0u);
    EXPECT_EQ(receive(moved), text.substr(0, moved));
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    EXPECT_EQ(multiplexer().run().value(), 0);
}

TEST_P(async_write_zero_copy_test, can_be_reset_and_used_again) {
    auto operation = writing(text);
    for (int i = 0; i < 20; ++i) {
        (void)operation.start();
        ASSERT_TRUE(drive_until([&] { return written.values != 0; }));
        std::size_t const moved = written.value->bytes_transferred();
        ASSERT_EQ(receive(moved), text.substr(0, moved)) << i;
        ASSERT_TRUE(drive_until([&] { return written.done(); }));
        written = {};
        operation.reset();
    }
}

TEST_P(async_write_zero_copy_test, writes_between_it_keep_their_order) {
    std::string const small = "small";
    record_of<async_write> copied;
    auto second = connect(async_write(tcp.first, bytes_of(small)), recorder(copied));
    auto first = writing(text);
    for (int i = 0; i < 10; ++i) {
        (void)first.start();
        ASSERT_TRUE(drive_until([&] { return written.values != 0; }));
        std::size_t const moved = written.value->bytes_transferred();
        std::string all = simulated() ? receive(moved) : "";  // it has room for no more
        (void)second.start();  // whether or not the buffer of the first is held
        ASSERT_TRUE(drive_until([&] { return copied.done(); }));
        all += receive(moved + small.size() - all.size());
        ASSERT_EQ(all, text.substr(0, moved) + small);
        ASSERT_TRUE(drive_until([&] { return written.done(); }));
        written = {};
        copied = {};
        first.reset();
        second.reset();
    }
}

TEST_P(async_write_zero_copy_test, of_nothing_completes) {
    auto operation = writing("");
    (void)operation.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    EXPECT_EQ(written.value->bytes_transferred(), 0u);
}

TEST_P(async_write_zero_copy_test, fails_where_the_peer_has_gone) {
    (void)tcp.second.close();
    for (int i = 0; i < 100; ++i) {
        auto operation = writing(text);
        written = {};
        (void)operation.start();
        ASSERT_TRUE(drive_until([&] { return written.done(); }));
        if (!*written.value) {
            EXPECT_TRUE(written.value->error() == std::errc::broken_pipe ||
                        written.value->error() == std::errc::connection_reset)
                << written.value->error().message();
            return;
        }
    }
    FAIL() << "it never failed";
}

TEST_P(async_write_zero_copy_test, over_unix_sockets_copies) {
    std::string const hello = "hello";
    auto sockets = stream_socket_handle::socket_pair().value();
    sockets.first.set_multiplexer(multiplexer());
    sockets.second.set_multiplexer(multiplexer());
    auto operation =
        connect(async_write_zero_copy(sockets.first, bytes_of(hello)), recorder(written));
    (void)operation.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    ASSERT_TRUE(*written.value) << written.value->error().message();
    std::array<std::byte, 16> memory;
    EXPECT_EQ(text_of(sockets.second.read(buffer(memory), patience)), hello);
}

TEST_P(async_write_zero_copy_test, is_held_until_the_peer_has_taken_it) {
    std::size_t total = 0;
    auto held = write_until_held(total);
    if (!by_ring()) {
        EXPECT_EQ(held, nullptr) << "where nothing but the ring writes without copying";
        return;
    }
    if (held == nullptr) {
        GTEST_SKIP() << "this kernel copies";
    }
    EXPECT_EQ(written.dones, 0);
    EXPECT_EQ(multiplexer().try_run_for(1ms).value(), -1) << "it isn't pending";
    EXPECT_EQ(receive(total).size(), total);
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    EXPECT_EQ(written.values, 1);
    EXPECT_EQ(multiplexer().run().value(), 0);
}

TEST_P(async_write_zero_copy_test, cancelled_or_timed_out_while_it_waits_tells_so) {
    for (bool const by_deadline : {true, false}) {
        do {  // again where the kernel's probe of the full peer has found room
            while (tcp.first.try_write_for(bytes_of(text), 10ms)) {
            }
            auto operation = writing(text, by_deadline ? deadline(5ms) : deadline());
            written = {};
            (void)operation.start();
            settle();
            if (!by_deadline) {
                operation.cancel();
            }
            ASSERT_TRUE(drive_until([&] { return written.done(); }));
        } while (*written.value);
        EXPECT_EQ(written.value->error(),
                  by_deadline ? std::errc::timed_out : std::errc::operation_canceled);
    }
}

TEST_P(async_write_zero_copy_test, destroyed_while_held_waits_for_the_kernel) {
    if (!by_ring()) {
        GTEST_SKIP() << "nothing but the ring holds buffers";
    }
    std::size_t total = 0;
    auto held = write_until_held(total);
    std::thread taker([&] {
        std::vector<std::byte> memory(64 * 1024);
        for (std::size_t taken = 0; taken < total;) {
            taken += tcp.second.read(buffer(memory), patience).bytes_transferred();
        }
    });
    held.reset();
    taker.join();
    EXPECT_EQ(multiplexer().run().value(), 0);
}

TEST_P(async_write_zero_copy_test, outlives_its_handle_and_its_multiplexer) {
    std::size_t total = 0;
    auto held = write_until_held(total);
    (void)tcp.first.close();
    settle();
    end_multiplexer();
    held.reset();
    EXPECT_LE(written.dones, 1);
}

TEST_P(async_write_zero_copy_test, more_than_a_ring_counts_are_copied) {
    std::string const small(64, 'x');
    constexpr std::size_t count = 400;
    std::vector<stream_socket_handle::pair> pairs;
    std::vector<record_of<async_write_zero_copy>> records(count);
    using operation =
        decltype(connect(async_write_zero_copy(tcp.first, const_buffer()), recorder(records[0])));
    std::vector<std::unique_ptr<operation>> all;
    for (std::size_t i = 0; i < count; ++i) {
        pairs.push_back(tcp_pair());
        all.push_back(std::make_unique<operation>(
            async_write_zero_copy(pairs[i].first, bytes_of(small)), recorder(records[i])));
        (void)all[i]->start();
    }
    std::array<std::byte, 128> memory;
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(drive_until([&] { return records[i].values != 0; })) << i;
        EXPECT_EQ(records[i].value->bytes_transferred(), small.size());
        EXPECT_EQ(pairs[i].second.read(buffer(memory), patience).bytes_transferred(), small.size());
        ASSERT_TRUE(drive_until([&] { return records[i].done(); })) << i;
    }
}

}  // namespace
}  // namespace plumb::test
