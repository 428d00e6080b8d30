// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_barrier.hpp>

#include <plumb/handle/file_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <chrono>
#include <string>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;

// On files: file_io_test.
class async_barrier_test : public on_every_backend {};

INSTANTIATE_TEST_SUITE_P(backends, async_barrier_test, every_backend(), name_of_backend);

TEST_P(async_barrier_test, of_a_pipe_is_over_at_once_beside_a_write_that_waits) {
    auto p = pipe();
    std::string const much(1 << 20, 'x');
    record_of<async_write> written;
    auto write = connect(async_write(p.writer, bytes_of(much)), recorder(written));
    (void)write.start();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
    write.reset();
    written = {};
    EXPECT_EQ(write.start(), io_status::pending);

    record_of<async_barrier> stored;
    auto barrier = connect(async_barrier(p.writer, bytes_of(much)), recorder(stored));
    EXPECT_EQ(barrier.start(), io_status::completed);
    EXPECT_TRUE(stored.untold());
    EXPECT_EQ(barrier.poll(), io_status::completed);
    EXPECT_EQ(stored.value->value().bytes(), much.size());
    EXPECT_TRUE(written.untold());

    write.cancel();
    ASSERT_TRUE(drive_until([&] { return written.done(); }));
}

TEST_P(async_barrier_test, the_try_forms_are_those_of_the_blocking_call) {
    auto p = pipe();
    std::string const some("text");
    auto constexpr all = barrier_kind::wait_all;
    for (auto const& sender :
         {async_barrier::try_async_barrier(p.writer, bytes_of(some)),
          async_barrier::try_async_barrier_for(p.writer, bytes_of(some), all, 1ms),
          async_barrier::try_async_barrier_until(p.writer, bytes_of(some), all, now())}) {
        record_of<async_barrier> stored;
        auto barrier = connect(sender, recorder(stored));
        (void)barrier.start();
        (void)barrier.poll();
        EXPECT_EQ(stored.value->value().bytes(), some.size());
    }
}

TEST_P(async_barrier_test, of_a_closed_handle_is_an_error) {
    pipe_handle closed;
    closed.set_multiplexer(multiplexer());
    record_of<async_barrier> stored;
    auto barrier = connect(async_barrier(closed), recorder(stored));
    EXPECT_EQ(barrier.start(), io_status::completed);
    EXPECT_EQ(barrier.poll(), io_status::completed);
    EXPECT_EQ(stored.value->error(), std::errc::bad_file_descriptor);
}

TEST_P(async_barrier_test, of_a_simulated_file_is_not_supported) {
    if (!simulated()) {
        GTEST_SKIP() << "there are files here";
    }
    auto nothing = pipe();
    auto f = file_handle::adopt(nothing.writer.release().value());
    f.set_multiplexer(multiplexer());
    record_of<async_barrier> stored;
    auto barrier = connect(async_barrier(f), recorder(stored));
    EXPECT_EQ(barrier.start(), io_status::completed);
    EXPECT_EQ(barrier.poll(), io_status::completed);
    EXPECT_EQ(stored.value->error(), std::errc::not_supported);
}

}  // namespace
}  // namespace plumb::test
