// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/file_handle.hpp>
#include <plumb/handle/mapped_file_handle.hpp>

#include <plumb/exec/stop_token.hpp>
#include <plumb/io/async_barrier.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/task/task.hpp>

#include "platform/seam.hpp"
#include "support/context.hpp"
#include "support/counted_calls.hpp"

#include <array>
#include <string>

namespace plumb::test {
namespace {

class file_io_task_test : public on_every_context {
protected:
    static file_handle with(std::string const& text) {
        auto f = file_handle::temporary_inode({}).value();
        EXPECT_EQ(f.write({bytes_of(text), 0}).value().bytes(), text.size());
        return f;
    }
    struct nothing_in_memory {
        nothing_in_memory() {
            table.try_read_at = [](native_handle, buffer const*, std::size_t,
                                   extent_type) noexcept {
                return platform::failed_with(std::errc::resource_unavailable_try_again);
            };
            platform::replace_seam(&table);
        }
        nothing_in_memory(nothing_in_memory const&) = delete;
        nothing_in_memory& operator=(nothing_in_memory const&) = delete;
        ~nothing_in_memory() { platform::replace_seam(nullptr); }
        platform::seam table = platform::native_seam();
    };
};

INSTANTIATE_TEST_SUITE_P(backends, file_io_task_test, real_backends(), name_of_backend);

TEST_P(file_io_task_test, writes_stores_and_reads_again) {
    auto f = file_handle::temporary_inode({}).value();
    run([](file_handle& file) -> task<> {
        std::string const text = "written";
        auto const written = co_await file.co_write({bytes_of(text), 5});
        EXPECT_EQ(written.value().bytes(), 7u);
        auto const stored = co_await file.co_barrier();
        EXPECT_TRUE(stored);
        std::array<std::byte, 16> memory{};
        auto const read = co_await file.co_read({buffer(memory), 8});
        EXPECT_EQ(text_of(read), "tten");
    }(f));
}

TEST_P(file_io_task_test, a_read_of_what_is_in_memory_does_not_suspend) {
    auto f = with("0123456789");
    auto const turns = context().multiplexer().counters().turns;
    run([](file_handle& file) -> task<> {
        for (int i = 0; i < 100; ++i) {
            std::array<std::byte, 4> memory{};
            auto const read = co_await file.co_read({buffer(memory), 2});
            EXPECT_EQ(text_of(read), "2345");
        }
    }(f));
    EXPECT_LE(context().multiplexer().counters().turns - turns, 2u);
}

TEST_P(file_io_task_test, a_stop_ends_it_or_its_result_was_first) {
    auto f = with("0123456789");
    nothing_in_memory const cold;
    for (bool const before : {true, false}) {
        stop_source source(executor());
        if (before) {
            source.request_stop();
        }
        run(
            [](file_handle& file, stop_source& stop, bool early) -> task<> {
                if (!early) {
                    stop.request_stop();
                }
                std::array<std::byte, 4> memory{};
                auto const read = co_await file.co_read({buffer(memory), 2});
                EXPECT_EQ(read.error(), std::errc::operation_canceled);
            }(f, source, before),
            source.token());
    }
}

TEST_P(file_io_task_test, a_stop_from_before_makes_no_system_call) {
    auto f = with("0123456789");
    stop_source stop(executor());
    stop.request_stop();
    run();
    auto const before = context().multiplexer().counters().completions;
    {
        counted_calls const calls;
        run(
            [](file_handle& file) -> task<> {
                std::array<std::byte, 4> memory{};
                auto const read = co_await file.co_read({buffer(memory), 2});
                EXPECT_EQ(read.error(), std::errc::operation_canceled);
                auto const written = co_await file.co_write({bytes_of("no"), 0});
                EXPECT_EQ(written.error(), std::errc::operation_canceled);
                auto const stored = co_await file.co_barrier();
                EXPECT_EQ(stored.error(), std::errc::operation_canceled);
            }(f),
            stop.token());
        EXPECT_EQ(calls.made(), 0u);
    }
    EXPECT_EQ(context().multiplexer().counters().completions, before);
    std::array<std::byte, 16> memory{};
    EXPECT_EQ(text_of(f.read({buffer(memory), 0})), "0123456789");
}

TEST_P(file_io_task_test, a_coroutine_that_is_destroyed_waits_for_its_memory) {
    auto f = with(std::string(1 << 20, 'x'));
    nothing_in_memory const cold;
    launch([](file_handle& file) -> task<> {
        std::array<std::byte, 4'096> memory{};
        for (;;) {
            (void)co_await file.co_read({buffer(memory), 2});
        }
    }(f));
    for (int i = 0; i < 10; ++i) {
        (void)context().multiplexer().try_run();
    }
    end_context();
}

}  // namespace
}  // namespace plumb::test
