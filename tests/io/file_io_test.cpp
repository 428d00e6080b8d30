// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/file_handle.hpp>
#include <plumb/handle/mapped_file_handle.hpp>

#include <plumb/io/async_barrier.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "platform/seam.hpp"
#include "support/allocations.hpp"
#include "support/backend.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using platform::failed_with;
using platform::outcome;

template <class Sender>
struct started {
    explicit started(Sender const& sender) : operation(connect(sender, recorder(told))) {
        status = operation.start();
    }
    record_of<Sender> told;
    io_operation_connection<Sender, recorder<typename Sender::result_type>> operation;
    io_status status;
};

/// Calls on files of helper threads stop here until they are let go.
class gate_of_files {
public:
    gate_of_files() : table_(platform::os()) {
        here = this;
        inner_ = platform::os();
        table_.try_read_at = [](auto...) noexcept { return again; };
        table_.read_at = [](native_handle h, buffer const* b, std::size_t n,
                            extent_type at) noexcept {
            here->pass();
            return inner_.read_at(h, b, n, at);
        };
        table_.write_at = [](native_handle h, const_buffer const* b, std::size_t n,
                             extent_type at) noexcept {
            here->pass();
            return inner_.write_at(h, b, n, at);
        };
        before_ = platform::replace_seam(&table_);
    }
    gate_of_files(gate_of_files const&) = delete;
    gate_of_files& operator=(gate_of_files const&) = delete;
    ~gate_of_files() {
        open();
        platform::replace_seam(before_);
    }
    void open() {
        std::scoped_lock const locked(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    /// Until so many calls have come to the gate.
    bool await(int calls) {
        std::unique_lock locked(mutex_);
        return changed_.wait_for(locked, patience, [&] { return come_ >= calls; });
    }
    [[nodiscard]] int come() {
        std::scoped_lock const locked(mutex_);
        return come_;
    }

private:
    static constexpr auto again = failed_with(std::errc::resource_unavailable_try_again);
    void pass() noexcept {
        std::unique_lock locked(mutex_);
        ++come_;
        changed_.notify_all();
        changed_.wait(locked, [&] { return open_; });
    }

    static inline gate_of_files* here = nullptr;
    static inline platform::seam inner_{};
    platform::seam table_;
    platform::seam const* before_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    int come_ = 0;
};

/// Nothing is read from memory while it lives, so that reads don't complete at once.
class cold_memory {
public:
    explicit cold_memory(std::errc failure = std::errc::resource_unavailable_try_again)
        : table_(platform::os()) {
        failure_ = failure;
        table_.try_read_at = [](native_handle, buffer const*, std::size_t, extent_type) noexcept {
            return failed_with(failure_);
        };
        before_ = platform::replace_seam(&table_);
    }
    cold_memory(cold_memory const&) = delete;
    cold_memory& operator=(cold_memory const&) = delete;
    ~cold_memory() { platform::replace_seam(before_); }

private:
    static inline std::errc failure_{};
    platform::seam table_;
    platform::seam const* before_ = nullptr;
};

std::string some_text(std::size_t size) {
    std::minstd_rand random(7);
    std::string text(size, ' ');
    std::ranges::generate(text, [&] { return static_cast<char>('a' + random() % 26); });
    return text;
}

class file_io_test : public on_every_backend {
protected:
    using mode = file_handle::mode;
    using creation = file_handle::creation;
    using caching = file_handle::caching;

    file_handle open(mode access = mode::write, caching cached = caching::all) {
        auto f = file({}, (directory_ / "f").native(), access, creation::if_needed, cached).value();
        f.set_multiplexer(multiplexer());
        return f;
    }
    file_handle with(std::string const& text) {
        auto f = open();
        EXPECT_EQ(f.write({bytes_of(text), 0}).value().bytes(), text.size());
        return f;
    }
    [[nodiscard]] std::filesystem::path path() const { return directory_ / "f"; }

    template <class Sender>
    typename Sender::result_type result_of(Sender const& sender) {
        started<Sender> s(sender);
        EXPECT_TRUE(drive_until([&] { return s.told.done(); }));
        EXPECT_EQ(s.told.values, 1);
        return *s.told.value;
    }

private:
    temporary_directory directory_;
};

INSTANTIATE_TEST_SUITE_P(backends, file_io_test, real_backends(), name_of_backend);

TEST_P(file_io_test, reads_what_a_blocking_read_reads) {
    auto const text = some_text(50'000);
    auto f = with(text);
    std::minstd_rand random(1);
    for (bool const cold : {false, true}) {
        std::optional<cold_memory> const memory(cold ? std::optional<cold_memory>(std::in_place)
                                                     : std::nullopt);
        for (int i = 0; i < 100; ++i) {
            std::vector<std::byte> a(random() % 20'000);
            auto b = a;
            auto const at = random() % 60'000;
            auto const blocking = f.read({buffer(a), at}).value();
            auto const read = result_of(async_read(f, {buffer(b), at})).value();
            ASSERT_EQ(read.bytes(), blocking.bytes()) << at;
            ASSERT_EQ(a, b);
        }
    }
}

TEST_P(file_io_test, lists_are_filled_in_order_and_may_be_longer_than_a_call_takes) {
    auto const text = some_text(9'000);
    auto f = with(text);
    for (bool const cold : {false, true}) {
        std::optional<cold_memory> const memory(cold ? std::optional<cold_memory>(std::in_place)
                                                     : std::nullopt);
        for (std::size_t const piece : {1, 3, 4}) {
            std::string got(piece * 2'500, '-');
            std::vector<buffer> list;
            for (std::size_t i = 0; i < 2'500; ++i) {
                list.emplace_back(got.data() + i * piece, piece);
            }
            auto const read = result_of(async_read(f, {list, 100})).value();
            EXPECT_EQ(read.bytes(), std::min(got.size(), text.size() - 100));
            EXPECT_EQ(got.substr(0, read.bytes()), text.substr(100, read.bytes()));
        }
    }
    auto other = file_handle::temporary_inode({}).value();
    other.set_multiplexer(multiplexer());
    std::vector<const_buffer> list;
    for (std::size_t i = 0; i < 3'000; ++i) {
        list.emplace_back(text.data() + i * 3, 3u);
    }
    EXPECT_EQ(result_of(async_write(other, {list, 5})).value().bytes(), 9'000u);
    std::string got(9'000, '-');
    EXPECT_EQ(other.read({buffer(got.data(), got.size()), 5}).value().bytes(), 9'000u);
    EXPECT_EQ(got, text);
}

TEST_P(file_io_test, read_at_end_returns_zero_bytes) {
    auto f = with("0123456789");
    std::array<std::byte, 8> memory{};
    for (bool const cold : {false, true}) {
        std::optional<cold_memory> const nothing_there(
            cold ? std::optional<cold_memory>(std::in_place) : std::nullopt);
        EXPECT_EQ(text_of(result_of(async_read(f, {buffer(memory), 6}))), "6789");
        EXPECT_EQ(result_of(async_read(f, {buffer(memory), 10})).value().bytes(), 0u);
        EXPECT_EQ(result_of(async_read(f, {buffer(memory), 1'000'000})).value().bytes(), 0u);
        EXPECT_EQ(result_of(async_read(f, {buffers(), 0})).value().bytes(), 0u);
    }
}

TEST_P(file_io_test, what_is_in_memory_is_read_without_suspending) {
    auto f = with("0123456789");
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    EXPECT_EQ(read.status, io_status::completed);
    EXPECT_EQ(read.operation.poll(), io_status::completed);
    EXPECT_EQ(text_of(*read.told.value), "2345");
    EXPECT_EQ(text_of(result_of(async_read(f, {buffer(memory), 4}, 0s))), "4567");
}

TEST_P(file_io_test, what_is_not_in_memory_is_never_waited_for_with_a_deadline_of_zero) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(result_of(async_read(f, {buffer(memory), 2}, 0s)).error(), std::errc::timed_out);
    EXPECT_EQ(result_of(async_write(f, {bytes_of("x"), 2}, 0s)).error(), std::errc::not_supported);
    EXPECT_EQ(result_of(async_barrier(f, {}, barrier_kind::wait_all, 0s)).error(),
              std::errc::not_supported);
}

TEST_P(file_io_test, reads_of_files_whose_memory_cannot_be_asked) {
    auto f = with("0123456789");
    cold_memory const cold(std::errc::operation_not_supported);
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(result_of(async_read(f, {buffer(memory), 2}, 0s)).error(), std::errc::not_supported);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(text_of(result_of(async_read(f, {buffer(memory), 2}))), "2345");
    }
}

TEST_P(file_io_test, a_read_of_which_a_part_is_in_memory_goes_on_with_the_rest) {
    auto const text = some_text(1'000);
    auto f = with(text);
    auto table = platform::os();
    table.try_read_at = [](native_handle h, buffer const* b, std::size_t,
                           extent_type at) noexcept -> outcome {
        if (at != 100) {
            return failed_with(std::errc::resource_unavailable_try_again);
        }
        buffer const some = b->first(70);
        return platform::native_seam().read_at(h, &some, 1, at);
    };
    auto const* const before = platform::replace_seam(&table);
    std::string got(600, '-');
    std::array<buffer, 3> const list{buffer(got.data(), 50u), buffer(got.data() + 50, 300u),
                                     buffer(got.data() + 350, 250u)};
    EXPECT_EQ(result_of(async_read(f, {list, 100})).value().bytes(), 600u);
    EXPECT_EQ(got, text.substr(100, 600));
    std::string one(600, '-');
    EXPECT_EQ(result_of(async_read(f, {buffer(one.data(), 600u), 100}, 0s)).value().bytes(), 70u)
        << "what can be had without waiting";
    platform::replace_seam(before);
}

TEST_P(file_io_test, requests_without_an_offset_follow_the_position_of_the_open_file) {
    auto f = with("0123456789");
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(text_of(result_of(async_read(f, buffer(memory)))), "0123");
    EXPECT_EQ(result_of(async_write(f, bytes_of("ab"))).value().bytes(), 2u);
    cold_memory const cold;
    EXPECT_EQ(text_of(result_of(async_read(f, buffer(memory)))), "6789");
    EXPECT_EQ(content_of(path()), "0123ab6789");
}

TEST_P(file_io_test, writes_then_barriers_of_every_kind) {
    auto f = open();
    std::string const text = "stored";
    EXPECT_EQ(result_of(async_write(f, {bytes_of(text), 3})).value().bytes(), 6u);
    for (auto const kind :
         {barrier_kind::nowait_data_only, barrier_kind::wait_data_only, barrier_kind::wait_all}) {
        EXPECT_EQ(result_of(async_barrier(f, {}, kind)).value().bytes(), 0u);
        auto const of_some = result_of(async_barrier(f, {bytes_of(text), 3}, kind)).value();
        EXPECT_EQ(of_some.bytes(), 6u);
        EXPECT_EQ((*of_some.begin()).data(), bytes_of(text).data());
    }
    EXPECT_EQ(content_of(path()), std::string(3, '\0') + "stored");
}

TEST_P(file_io_test, operations_on_a_closed_handle_say_so) {
    file_handle f;
    f.set_multiplexer(multiplexer());
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(result_of(async_read(f, {buffer(memory), 2})).error(),
              std::errc::bad_file_descriptor);
    EXPECT_EQ(result_of(async_barrier(f)).error(), std::errc::bad_file_descriptor);
}

TEST_P(file_io_test, what_is_appended_goes_to_the_end_wherever_it_was_asked_for) {
    (void)with("begin ");
    auto f = open(mode::append);
    EXPECT_EQ(result_of(async_write(f, {bytes_of("middle "), 0})).value().bytes(), 7u);
    EXPECT_EQ(result_of(async_write(f, bytes_of("end"))).value().bytes(), 3u);
    EXPECT_EQ(content_of(path()), "begin middle end");
    std::string const piece = "-";
    std::vector<const_buffer> const list(2'000, bytes_of(piece));
    EXPECT_EQ(result_of(async_write(f, list)).value().bytes(), 1'024u) << "together";
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(result_of(async_read(f, {buffer(memory), 0})).error(),
              std::errc::bad_file_descriptor);
}

TEST_P(file_io_test, direct_io_checks_its_alignment) {
    (void)with(some_text(16'384));
    auto opened = file({}, path().native(), mode::write, creation::open_existing, caching::none);
    if (!opened) {
        GTEST_SKIP() << "the file system has no i/o without caching";
    }
    auto f = std::move(*opened);
    f.set_multiplexer(multiplexer());
    struct alignas(4096) page {
        std::array<std::byte, 8192> bytes{};
    } memory;
    EXPECT_EQ(result_of(async_read(f, {buffer(memory.bytes), 4096})).value().bytes(), 8192u);
    EXPECT_EQ(std::string(reinterpret_cast<char const*>(memory.bytes.data()), 8192),
              some_text(16'384).substr(4096, 8192));
    EXPECT_EQ(result_of(async_read(f, {buffer(memory.bytes), 3})).error(), error::misaligned);
    EXPECT_EQ(result_of(async_write(f, {const_buffer(memory.bytes.data() + 1, 4096u), 0})).error(),
              error::misaligned);
    EXPECT_EQ(result_of(async_read(f, {buffer(memory.bytes), 0}, 0s)).error(),
              std::errc::not_supported);
    EXPECT_EQ(result_of(async_write(f, {const_buffer(memory.bytes), 0})).value().bytes(), 8192u);
    EXPECT_EQ(content_of(path()).substr(0, 8192), some_text(16'384).substr(4096, 8192));
}

TEST_P(file_io_test, many_operations_are_in_flight_on_one_handle) {
    auto const text = some_text(1 << 20);
    auto f = with(text);
    cold_memory const cold;
    constexpr std::size_t count = 1'000;  // more than any backend begins at once
    std::vector<std::array<char, 512>> memory(count);
    std::deque<started<async_read>> reads;
    for (std::size_t i = 0; i < count; ++i) {
        reads.emplace_back(async_read(f, {buffer(memory[i].data(), memory[i].size()), i * 997}));
    }
    ASSERT_TRUE(drive_until(
        [&] { return std::ranges::all_of(reads, [](auto const& r) { return r.told.done(); }); }));
    for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(text_of(*reads[i].told.value), text.substr(i * 997, 512));
    }
    EXPECT_EQ(multiplexer().complete_io().value(), 0) << "nothing is pending";
}

TEST_P(file_io_test, a_turn_that_is_bounded_completes_no_more) {
    auto f = with(some_text(4'096));
    cold_memory const cold;
    std::array<std::array<char, 16>, 8> memory{};
    std::deque<started<async_read>> reads;
    for (auto& m : memory) {
        reads.emplace_back(async_read(f, {buffer(m.data(), m.size()), 0}));
    }
    int completed = 0;
    while (completed < 8) {
        auto const done = multiplexer().run(1).value();
        ASSERT_LE(done, 1);
        completed += std::max(done, 0);
        ASSERT_EQ(std::ranges::count_if(reads, [](auto const& r) { return r.told.done(); }),
                  completed);
    }
}

TEST_P(file_io_test, complete_io_alone_completes_them) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    EXPECT_EQ(read.status, io_status::pending);
    auto const end = now() + patience;
    while (!read.told.done() && now() < end) {
        (void)multiplexer().complete_io().value();
    }
    EXPECT_EQ(text_of(*read.told.value), "2345");
}

TEST_P(file_io_test, poll_completes_one) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    auto const end = now() + patience;
    while (read.operation.poll() == io_status::pending && now() < end) {
    }
    EXPECT_EQ(text_of(*read.told.value), "2345");
    EXPECT_EQ(multiplexer().complete_io().value(), 0);
}

TEST_P(file_io_test, a_connection_can_be_started_again) {
    auto f = with("0123456789");
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 8}));
    ASSERT_TRUE(drive_until([&] { return read.told.done(); }));
    for (bool const cold : {false, true, false}) {
        std::optional<cold_memory> const nothing_there(
            cold ? std::optional<cold_memory>(std::in_place) : std::nullopt);
        read.told = {};
        read.operation.reset();
        (void)read.operation.start();
        ASSERT_TRUE(drive_until([&] { return read.told.done(); }));
        EXPECT_EQ(text_of(*read.told.value), "89");
    }
}

TEST_P(file_io_test, a_cancel_ends_it_or_its_result_was_first) {
    auto f = with(some_text(100'000));
    cold_memory const cold;
    for (int i = 0; i < 100; ++i) {
        std::array<std::byte, 4096> memory{};
        std::array<std::byte, 4096> const other{};
        started<async_read> read(async_read(f, {buffer(memory), 10}));
        started<async_write> write(async_write(f, {const_buffer(other), 200'000}));
        if (i % 2 != 0) {
            (void)multiplexer().complete_io();
        }
        read.operation.cancel();
        write.operation.cancel();
        ASSERT_TRUE(drive_until([&] { return read.told.done() && write.told.done(); }));
        ASSERT_TRUE(*read.told.value || read.told.value->error() == std::errc::operation_canceled);
        ASSERT_TRUE(*write.told.value ||
                    write.told.value->error() == std::errc::operation_canceled);
    }
}

TEST_P(file_io_test, a_deadline_ends_it_or_its_result_was_first) {
    auto f = with(some_text(100'000));
    cold_memory const cold;
    std::array<std::byte, 4096> memory{};
    for (deadline const limit : {deadline(1ns), deadline(1us), deadline(20us), deadline(1h),
                                 deadline(std::chrono::steady_clock::time_point())}) {
        auto const read = result_of(async_read(f, {buffer(memory), 10}, limit));
        EXPECT_TRUE(read || read.error() == std::errc::timed_out);
        if (limit == deadline(1h)) {
            EXPECT_EQ(read.value().bytes(), 4096u);
        }
    }
}

TEST_P(file_io_test, destroying_operations_in_flight_waits_for_their_memory) {
    auto const text = some_text(1 << 20);
    auto f = with(text);
    cold_memory const cold;
    for (int i = 0; i < 50; ++i) {
        std::vector<std::byte> memory(1 << 18);
        {
            std::deque<started<async_read>> reads;
            for (int n = 0; n < 4; ++n) {
                reads.emplace_back(
                    async_read(f, {buffer(memory.data() + (n << 16), std::size_t{1} << 16), 0}));
            }
            if (i % 2 != 0) {
                (void)multiplexer().complete_io();
            }
        }
        auto const before = memory;
        std::this_thread::yield();
        ASSERT_EQ(before, memory);
    }
    EXPECT_EQ(multiplexer().complete_io().value(), 0);
}

TEST_P(file_io_test, closing_the_handle_ends_what_is_in_flight) {
    cold_memory const cold;
    auto const text = some_text(10'000);
    for (int i = 0; i < 20; ++i) {
        auto f = with(text);
        std::vector<std::array<char, 512>> memory(400);
        std::deque<started<async_read>> reads;
        for (auto& m : memory) {
            reads.emplace_back(async_read(f, {buffer(m.data(), m.size()), 0}));
        }
        if (i % 2 != 0) {
            (void)multiplexer().complete_io();
        }
        ASSERT_TRUE(f.close());
        ASSERT_TRUE(drive_until([&] {
            return std::ranges::all_of(reads, [](auto const& r) { return r.told.done(); });
        }));
        for (auto const& r : reads) {
            ASSERT_TRUE(*r.told.value || r.told.value->error() == std::errc::operation_canceled)
                << r.told.value->error();
        }
    }
}

TEST_P(file_io_test, a_handle_moves_while_operations_are_in_flight_and_is_not_released) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    file_handle moved(std::move(f));
    EXPECT_EQ(moved.release().error(), error::busy);
    ASSERT_TRUE(drive_until([&] { return read.told.done(); }));
    EXPECT_EQ(text_of(*read.told.value), "2345");
    auto const native = moved.release();
    ASSERT_TRUE(native);
    ::close(static_cast<int>(*native));
}

TEST_P(file_io_test, the_multiplexer_ends_with_operations_in_flight) {
    auto f = with(some_text(10'000));
    cold_memory const cold;
    std::vector<std::array<char, 512>> memory(400);
    std::deque<started<async_read>> reads;
    for (auto& m : memory) {
        reads.emplace_back(async_read(f, {buffer(m.data(), m.size()), 0}));
    }
    (void)multiplexer().complete_io();
    end_multiplexer();
    auto const before = memory;
    std::this_thread::yield();
    EXPECT_EQ(memory, before);
}

TEST_P(file_io_test, a_multiplexer_that_was_never_driven_ends_with_operations_in_flight) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    EXPECT_EQ(read.status, io_status::pending);
    end_multiplexer();
    EXPECT_TRUE(read.told.untold());
}

TEST_P(file_io_test, another_thread_drives_what_was_started_here) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    std::jthread([&] { EXPECT_TRUE(drive_until([&] { return read.told.done(); })); }).join();
    EXPECT_EQ(text_of(*read.told.value), "2345");

    // And now that thread is gone, which a ring notices.
    EXPECT_EQ(multiplexer().complete_io().value(), 0);
    started<async_read> again(async_read(f, {buffer(memory), 4}));
    ASSERT_TRUE(drive_until([&] { return again.told.done(); }));
    EXPECT_EQ(text_of(*again.told.value), "4567");
}

TEST_P(file_io_test, a_process_that_is_forked_off_ends_without_waiting) {
    auto f = with("0123456789");
    cold_memory const cold;
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(text_of(result_of(async_read(f, {buffer(memory), 2}))), "2345");
    started<async_read> read(async_read(f, {buffer(memory), 4}));
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(10);
        end_multiplexer();
        ::_exit(7);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
    ASSERT_TRUE(drive_until([&] { return read.told.done(); }));
    EXPECT_EQ(text_of(*read.told.value), "4567");
}

TEST_P(file_io_test, mapped_files_give_bytes_of_their_map_and_are_written_to_like_others) {
    (void)with("0123456789");
    auto m = mapped_file({}, path().native(), mapped_file_handle::mode::write).value();
    m.set_multiplexer(multiplexer());
    started<async_read> read(async_read(m, {buffer(nullptr, 4u), 8}));
    EXPECT_EQ(read.status, io_status::completed);
    EXPECT_EQ(read.operation.poll(), io_status::completed);
    EXPECT_EQ(text_of(*read.told.value), "89");
    EXPECT_EQ(result_of(async_write(m, {bytes_of("abcd"), 9})).value().bytes(), 4u);
    EXPECT_TRUE(result_of(async_barrier(m)));
    read.told = {};
    read.operation.reset();
    (void)read.operation.start();
    (void)read.operation.poll();
    EXPECT_EQ(text_of(*read.told.value), "8abc") << "as much as was asked for at first";
    EXPECT_EQ(result_of(async_read(m, buffer(nullptr, 4u))).error(), std::errc::invalid_argument);
    ASSERT_TRUE(file({}, path().native(), mode::write).value().truncate(2));
    EXPECT_EQ(result_of(async_read(m, {buffer(nullptr, 4u), 8})).error(), error::file_shrank);
}

TEST_P(file_io_test, pooled_reads_are_not_supported_and_say_so) {
    auto f = with("0123456789");
    started<async_read_pooled> read(async_read_pooled(f, 4));
    EXPECT_EQ(read.status, io_status::completed);
    EXPECT_EQ(read.operation.poll(), io_status::completed);
    EXPECT_EQ(read.told.value->error(), std::errc::not_supported);
}

TEST_P(file_io_test, nothing_is_allocated_between_start_and_end) {
    auto f = with(some_text(100'000));
    struct quiet {
        int* done;
        void set_value(io_result<buffers>&&) noexcept {}
        void set_done() noexcept { ++*done; }
    };
    std::array<std::byte, 512> memory{};
    std::array<std::byte, 512> more{};
    auto const turn = [&] {
        int done = 0;
        auto first = connect(async_read(f, {buffer(memory), 10}), quiet{&done});
        auto second = connect(async_read(f, {buffer(more), 900}, 1h), quiet{&done});
        (void)first.start();
        (void)second.start();
        while (done != 2) {
            (void)multiplexer().run();
        }
    };
    for (bool const cold : {false, true}) {
        std::optional<cold_memory> const nothing_there(
            cold ? std::optional<cold_memory>(std::in_place) : std::nullopt);
        turn();
        auto const before = heap_allocations();
        for (int i = 0; i < 300; ++i) {
            turn();
        }
        EXPECT_EQ(heap_allocations(), before);
    }
}

/// While it lives, the n-th call on a file fails.
class nth_call_fails {
public:
    explicit nth_call_fails(int n) : table_(platform::os()) {
        left_ = n;
        table_.read_at = table_.try_read_at = [](native_handle h, buffer const* b,
                                                 std::size_t count, extent_type at) noexcept {
            return or_failure([&] { return platform::native_seam().read_at(h, b, count, at); });
        };
        table_.write_at = [](native_handle h, const_buffer const* b, std::size_t count,
                             extent_type at) noexcept {
            return or_failure([&] { return platform::native_seam().write_at(h, b, count, at); });
        };
        table_.sync_file = [](native_handle h, barrier_kind kind, extent_type at,
                              extent_type bytes) noexcept {
            return or_failure(
                [&] { return platform::native_seam().sync_file(h, kind, at, bytes); });
        };
        before_ = platform::replace_seam(&table_);
    }
    nth_call_fails(nth_call_fails const&) = delete;
    nth_call_fails& operator=(nth_call_fails const&) = delete;
    ~nth_call_fails() { platform::replace_seam(before_); }
    /// Whether there were that many calls.
    [[nodiscard]] bool failed() const noexcept { return left_ <= 0; }

private:
    template <class Call>
    static outcome or_failure(Call call) noexcept {
        return --left_ == 0 ? failed_with(std::errc::io_error) : call();
    }

    static inline std::atomic<int> left_ = 0;
    platform::seam table_;
    platform::seam const* before_ = nullptr;
};

// What only helper threads do.

class file_helpers_test : public file_io_test {};

INSTANTIATE_TEST_SUITE_P(backends, file_helpers_test, ::testing::Values(multiplexer_kind::epoll),
                         name_of_backend);

TEST_P(file_helpers_test, operations_on_files_hold_up_nothing_else) {
    auto f = with("0123456789");
    gate_of_files gate;
    std::array<std::byte, 4> memory{};
    started<async_read> read(async_read(f, {buffer(memory), 2}));
    EXPECT_EQ(result_of(async_wait(multiplexer(), 1ms)).has_value(), true);
    EXPECT_TRUE(read.told.untold());
    gate.open();
    ASSERT_TRUE(drive_until([&] { return read.told.done(); }));
    EXPECT_EQ(text_of(*read.told.value), "2345");
}

TEST_P(file_helpers_test, what_runs_is_not_cancelled_and_what_waits_is) {
    auto f = with("0123456789");
    gate_of_files gate;
    std::array<std::array<std::byte, 4>, 6> memory{};
    std::deque<started<async_read>> reads;
    for (auto& m : memory) {
        reads.emplace_back(async_read(f, {buffer(m), 2}));
    }
    ASSERT_TRUE(gate.await(4)) << "at most four at a time";
    for (auto& r : reads) {
        r.operation.cancel();
    }
    (void)multiplexer().complete_io();
    EXPECT_EQ(std::ranges::count_if(reads, [](auto const& r) { return r.told.done(); }), 2);
    EXPECT_EQ(gate.come(), 4);
    gate.open();
    ASSERT_TRUE(drive_until(
        [&] { return std::ranges::all_of(reads, [](auto const& r) { return r.told.done(); }); }));
    EXPECT_EQ(std::ranges::count_if(reads, [](auto const& r) { return r.told.value->has_value(); }),
              4);
}

TEST_P(file_helpers_test, a_deadline_ends_what_waits) {
    auto f = with("0123456789");
    gate_of_files gate;
    std::array<std::array<std::byte, 4>, 5> memory{};
    std::deque<started<async_read>> reads;
    for (auto& m : memory) {
        reads.emplace_back(async_read(f, {buffer(m), 2}, 1ms));
    }
    ASSERT_TRUE(gate.await(4));
    ASSERT_TRUE(drive_until([&] { return reads.back().told.done(); }));
    EXPECT_EQ(reads.back().told.value->error(), std::errc::timed_out);
    gate.open();
    ASSERT_TRUE(drive_until([&] { return reads.front().told.done(); }));
    EXPECT_EQ(text_of(*reads.front().told.value), "2345") << "it was being done";
    ASSERT_TRUE(drive_until(
        [&] { return std::ranges::all_of(reads, [](auto const& r) { return r.told.done(); }); }));
}

TEST_P(file_helpers_test, threads_are_started_once) {
    auto f = with("0123456789");
    cold_memory const cold;
    static std::atomic<int> threads;
    threads = 0;
    auto table = platform::os();
    table.start_thread = [](platform::thread_start& s) noexcept {
        ++threads;
        return platform::native_seam().start_thread(s);
    };
    auto const* const before = platform::replace_seam(&table);
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(text_of(result_of(async_read(f, {buffer(memory), 2}))), "2345");
    int const at_first = threads;
    EXPECT_GT(at_first, 0);
    std::array<std::array<std::byte, 4>, 20> many{};
    std::deque<started<async_read>> reads;
    for (auto& each : many) {
        reads.emplace_back(async_read(f, {buffer(each), 2}));
    }
    ASSERT_TRUE(drive_until(
        [&] { return std::ranges::all_of(reads, [](auto const& r) { return r.told.done(); }); }));
    EXPECT_EQ(threads, at_first);
    platform::replace_seam(before);
}

TEST_P(file_helpers_test, where_no_thread_can_be_had_it_is_an_error_of_the_operation) {
    auto f = with("0123456789");
    cold_memory const cold;
    auto table = platform::os();
    table.start_thread = [](platform::thread_start&) noexcept -> outcome {
        return failed_with(std::errc::resource_unavailable_try_again);
    };
    auto const* const before = platform::replace_seam(&table);
    std::array<std::byte, 4> memory{};
    EXPECT_EQ(result_of(async_read(f, {buffer(memory), 2})).error(), std::errc::not_supported);
    platform::replace_seam(before);
    EXPECT_EQ(text_of(result_of(async_read(f, {buffer(memory), 2}))), "2345");
}

TEST_P(file_helpers_test, each_call_that_fails_is_told_once_and_the_next_goes_on) {
    auto const text = some_text(9'000);
    std::array<const_buffer, 2> const list{const_buffer(text.data(), 4'000u),
                                           const_buffer(text.data() + 4'000, 5'000u)};
    auto f = open();
    int failures = 0;
    for (int n = 1;; ++n) {
        nth_call_fails const failing(n);
        std::string got(9'000, '-');
        auto const written = result_of(async_write(f, {list, 0}));
        auto const stored = result_of(async_barrier(f));
        auto const read = result_of(async_read(f, {buffer(got.data(), got.size()), 0}));
        for (auto const& error : {written.has_value() ? std::error_code() : written.error(),
                                  stored.has_value() ? std::error_code() : stored.error(),
                                  read.has_value() ? std::error_code() : read.error()}) {
            failures += error == std::errc::io_error ? 1 : 0;
            EXPECT_TRUE(!error || error == std::errc::io_error) << error;
        }
        if (!failing.failed()) {
            EXPECT_EQ(got, text);
            EXPECT_EQ(n, failures + 1);
            break;
        }
        ASSERT_LT(n, 10);
    }
    EXPECT_EQ(failures, 3);
}

TEST_P(file_helpers_test, an_error_after_the_first_bytes_is_left_to_the_next_call) {
    auto f = open();
    auto table = platform::os();
    static std::atomic<int> calls;
    calls = 0;
    table.write_at = [](native_handle h, const_buffer const* b, std::size_t n,
                        extent_type at) noexcept {
        return ++calls % 2 == 0 ? failed_with(std::errc::no_space_on_device)
                                : platform::native_seam().write_at(h, b, n, at);
    };
    auto const* const before = platform::replace_seam(&table);
    std::string const piece = "ab";
    std::vector<const_buffer> const list(1'500, bytes_of(piece));
    EXPECT_EQ(result_of(async_write(f, {list, 0})).value().bytes(), 2'048u);
    EXPECT_EQ(result_of(async_write(f, {bytes_of("x"), 0})).value().bytes(), 1u);
    EXPECT_EQ(result_of(async_write(f, {bytes_of("x"), 0})).error(), std::errc::no_space_on_device);
    platform::replace_seam(before);
}

}  // namespace
}  // namespace plumb::test
