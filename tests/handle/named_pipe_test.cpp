// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/pipe_handle.hpp>

#include <plumb/handle/file_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/failing_calls.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using mode = pipe_handle::mode;
using creation = pipe_handle::creation;

/// There are no names in a simulated system.
class named_pipe_test : public on_every_backend {
protected:
    void SetUp() override {
        on_every_backend::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) {
            directory = path_handle::directory(files.path().native()).value();
        }
    }

    result<pipe_handle> open(mode end, creation existence = creation::if_needed,
                             deadline limit = 0s, std::string const& name = "pipe") {
        auto h = pipe_handle::named_pipe(directory, name, end, existence, limit);
        if (h) {
            h->set_multiplexer(multiplexer());
        }
        return h;
    }

    template <class Sender>
    typename Sender::result_type complete(Sender const& sender) {
        record_of<Sender> told;
        auto operation = connect(sender, recorder(told));
        (void)operation.start();
        EXPECT_TRUE(drive_until([&] { return told.done(); }));
        return std::move(*told.value);
    }
    [[nodiscard]] std::string receive(pipe_handle& h) {
        return text_of(complete(async_read(h, buffer(memory), patience)));
    }
    [[nodiscard]] static bool blocks(pipe_handle const& h) {
        return (::fcntl(static_cast<int>(h.native()), F_GETFL) & O_NONBLOCK) == 0;
    }

    temporary_directory files;
    path_handle directory;
    std::array<std::byte, 64> memory{};
};

INSTANTIATE_TEST_SUITE_P(backends, named_pipe_test, real_backends(), name_of_backend);

TEST_P(named_pipe_test, connects_who_opens_its_ends_by_name) {
    auto reader = open(mode::read, creation::create_new).value();
    auto writer = open(mode::write, creation::open_existing).value();
    ASSERT_TRUE(complete(async_write(writer, bytes_of("hello"))));
    EXPECT_EQ(receive(reader), "hello");
    ASSERT_TRUE(writer.write(bytes_of("again"), patience));
    EXPECT_EQ(text_of(reader.read(buffer(memory), patience)), "again");
    ASSERT_TRUE(writer.close());
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(complete(async_read(reader, buffer(memory))).bytes_transferred(), 0u);
        EXPECT_EQ(reader.read(buffer(memory), 1h).bytes_transferred(), 0u);
    }
    EXPECT_TRUE(std::filesystem::is_fifo(files / "pipe")) << "it stays";
}

TEST_P(named_pipe_test, that_never_had_a_writer_is_not_at_its_end) {
    auto reader = open(mode::read).value();
    EXPECT_EQ(reader.try_read(buffer(memory)).error(), std::errc::timed_out);
    EXPECT_EQ(reader.read(buffer(memory), 5ms).error(), std::errc::timed_out);
    record_of<async_read> told;
    auto reading = connect(async_read(reader, buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    EXPECT_TRUE(told.untold());
    auto writer = open(mode::write).value();
    settle();
    EXPECT_TRUE(told.untold()) << "opened, but nothing written";
    ASSERT_TRUE(writer.write(bytes_of("x")));
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(text_of(*told.value), "x");
}

TEST_P(named_pipe_test, ends_with_its_last_writer_and_goes_on_with_the_next) {
    auto reader = open(mode::read).value();
    for (std::string const text : {"first", "second", "third"}) {
        record_of<async_read> told;
        auto reading = connect(async_read(reader, buffer(memory)), recorder(told));
        if (text == "first") {
            ASSERT_EQ(reading.start(), io_status::pending);
            settle();
        }
        auto writer = open(mode::write).value();
        if (text != "first") {
            (void)reading.start();
        }
        ASSERT_TRUE(writer.write(bytes_of(text)));
        ASSERT_TRUE(drive_until([&] { return told.done(); }));
        EXPECT_EQ(text_of(*told.value), text);
        ASSERT_TRUE(writer.close());
        EXPECT_EQ(complete(async_read(reader, buffer(memory), patience)).bytes_transferred(), 0u);
    }
}

TEST_P(named_pipe_test, a_writer_that_leaves_without_a_word_ends_it) {
    auto reader = open(mode::read).value();
    record_of<async_read> told;
    auto reading = connect(async_read(reader, buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    ASSERT_TRUE(open(mode::write).value().close());
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->bytes_transferred(), 0u);
}

TEST_P(named_pipe_test, a_read_that_waits_for_a_writer_is_cancelled) {
    auto reader = open(mode::read).value();
    record_of<async_read> told;
    auto reading = connect(async_read(reader, buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    reading.cancel();
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(told.value->error(), std::errc::operation_canceled);
}

TEST_P(named_pipe_test, a_writer_waits_for_a_reader_until_its_deadline) {
    ASSERT_EQ(::mkfifo((files / "pipe").c_str(), 0600), 0);
    auto const before = open_descriptors();
    EXPECT_EQ(open(mode::write).error(), std::errc::timed_out);
    auto const start = now();
    EXPECT_EQ(open(mode::write, creation::open_existing, 20ms).error(), std::errc::timed_out);
    EXPECT_GE(now() - start, 20ms);
    EXPECT_EQ(open_descriptors(), before);
    for (deadline const limit : {deadline(patience), deadline()}) {
        std::thread other([&] {
            auto const reader = pipe_handle::named_pipe(directory, "pipe", mode::read);
            std::array<std::byte, 1> one;
            EXPECT_EQ(std::move(reader)->clone()->read(buffer(one), patience).bytes_transferred(),
                      1u);
        });
        auto writer = open(mode::write, creation::open_existing, limit);
        ASSERT_TRUE(writer) << writer.error().message();
        EXPECT_FALSE(blocks(*writer));
        EXPECT_TRUE(complete(async_write(*writer, bytes_of("x"))));
        other.join();
    }
}

TEST_P(named_pipe_test, a_writer_whose_reader_is_gone_gets_an_error_and_no_signal) {
    std::signal(SIGPIPE, SIG_DFL);
    auto reader = open(mode::read).value();
    auto writer = open(mode::write).value();
    ASSERT_TRUE(reader.close());
    EXPECT_EQ(writer.write(bytes_of("x"), patience).error(), std::errc::broken_pipe);
    EXPECT_EQ(complete(async_write(writer, bytes_of("x"))).error(), std::errc::broken_pipe);
}

TEST_P(named_pipe_test, a_full_one_makes_its_writer_wait_and_keeps_the_order) {
    auto reader = open(mode::read).value();
    auto writer = open(mode::write).value();
    std::string all(400'000, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<char>(i * 7 + i / 65536);
    }
    record_of<async_write> told;
    std::size_t written = 0;
    auto writing = connect(async_write(writer, bytes_of(all)), recorder(told));
    (void)writing.start();
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    written += told.value->bytes_transferred();
    EXPECT_LT(written, all.size());
    record_of<async_write> more;
    auto blocked =
        connect(async_write(writer, const_buffer(all.data() + written, all.size() - written)),
                recorder(more));
    ASSERT_EQ(blocked.start(), io_status::pending);
    settle();
    EXPECT_TRUE(more.untold());
    std::string received;
    while (received.size() < written) {
        received += receive(reader);
    }
    ASSERT_TRUE(drive_until([&] { return more.done(); }));
    written += more.value->bytes_transferred();
    while (received.size() < written) {
        received += receive(reader);
    }
    EXPECT_TRUE(received == all.substr(0, received.size()));
}

TEST_P(named_pipe_test, small_writes_of_several_buffers_stay_whole) {
    auto reader = open(mode::read).value();
    auto writer = open(mode::write).value();
    std::string const a = "one ";
    std::string const b = "two";
    std::array<const_buffer, 2> const from{bytes_of(a), bytes_of(b)};
    EXPECT_EQ(complete(async_write(writer, const_buffers(from))).bytes_transferred(), 7u);
    std::array<std::byte, 2> first;
    std::array<buffer, 2> const into{buffer(first), buffer(memory)};
    EXPECT_EQ(text_of(complete(async_read(reader, buffers(into)))), "one two");
}

TEST_P(named_pipe_test, is_shared_with_programs_of_the_shell) {
    auto const path = (files / "pipe").string();
    auto reader = open(mode::read).value();
    std::thread shell([&] { EXPECT_EQ(std::system(("printf shell > " + path).c_str()), 0); });
    EXPECT_EQ(receive(reader), "shell");
    EXPECT_EQ(receive(reader), "");
    shell.join();
    ASSERT_TRUE(reader.close());

    std::thread other(
        [&] { EXPECT_EQ(std::system(("cat " + path + " > " + path + ".out").c_str()), 0); });
    auto writer = open(mode::write, creation::open_existing, patience);
    EXPECT_TRUE(writer && complete(async_write(*writer, bytes_of("plumb"))));
    EXPECT_TRUE(writer->close());
    other.join();
    EXPECT_EQ(content_of(path + ".out"), "plumb");
}

// Names.

TEST_P(named_pipe_test, is_created_as_asked_for) {
    EXPECT_EQ(open(mode::read, creation::open_existing).error(),
              std::errc::no_such_file_or_directory);
    EXPECT_TRUE(open(mode::read, creation::create_new));
    EXPECT_EQ(open(mode::read, creation::create_new).error(), std::errc::file_exists);
    EXPECT_TRUE(open(mode::read, creation::if_needed));
    EXPECT_TRUE(open(mode::read, creation::open_existing));
    EXPECT_EQ(open(mode::read, creation::if_needed, 0s, "missing/pipe").error(),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(open(mode::read, creation::if_needed, 0s, std::string("a\0b", 3)).error(),
              error::zero_in_path);
    EXPECT_EQ(files.entries(), 1u);
}

TEST_P(named_pipe_test, what_has_the_name_but_is_no_pipe_is_refused_untouched) {
    make_file(files / "pipe", "content");
    std::filesystem::create_directory(files / "directory");
    for (mode const end : {mode::read, mode::write}) {
        EXPECT_EQ(open(end).error(), error::wrong_kind);
        EXPECT_EQ(open(end, creation::open_existing, 0s, "directory").error(), error::wrong_kind);
    }
    EXPECT_EQ(content_of(files / "pipe"), "content");
}

TEST_P(named_pipe_test, is_found_relative_to_a_directory_that_was_renamed) {
    std::filesystem::create_directory(files / "before");
    auto const base = path_handle::directory(directory, "before").value();
    std::filesystem::rename(files / "before", files / "after");
    std::filesystem::create_directory(files / "before");
    auto const reader = pipe_handle::named_pipe(base, "pipe", mode::read, creation::create_new);
    ASSERT_TRUE(reader) << reader.error().message();
    EXPECT_TRUE(std::filesystem::is_fifo(files / "after" / "pipe"));
    EXPECT_FALSE(std::filesystem::exists(files / "before" / "pipe"));
}

// Ownership.

TEST_P(named_pipe_test, blocks_again_once_it_is_released) {
    auto reader = open(mode::read).value();
    auto writer = open(mode::write).value();
    EXPECT_FALSE(blocks(reader));
    auto const native = reader.release().value();
    auto const adopted = pipe_handle::adopt(native).value();
    EXPECT_TRUE(blocks(adopted));
}

TEST_P(named_pipe_test, is_opened_again_without_its_name_and_with_flags_of_its_own) {
    auto reader = open(mode::read).value();
    auto writer = open(mode::write).value();
    std::filesystem::remove(files / "pipe");
    auto again = reader.reopen(mode::write).value();
    again.set_multiplexer(multiplexer());
    ASSERT_TRUE(writer.close());
    ASSERT_TRUE(complete(async_write(again, bytes_of("still"))));
    EXPECT_EQ(receive(reader), "still");
    ASSERT_TRUE(reader.close());
    EXPECT_EQ(again.reopen(mode::write).error(), std::errc::no_such_device_or_address);

    auto anonymous = pipe_handle::anonymous_pipe().value();
    auto other = anonymous.reader.reopen(mode::read).value();
    EXPECT_TRUE(blocks(anonymous.reader));
    ASSERT_TRUE(anonymous.writer.write(bytes_of("x")));
    EXPECT_EQ(text_of(other.read(buffer(memory), patience)), "x");
}

TEST_P(named_pipe_test, a_full_descriptor_table_is_an_error) {
    auto const keeps = open(mode::read).value();
    full_descriptor_table const full;
    EXPECT_EQ(open(mode::read).error(), std::errc::too_many_files_open);
    EXPECT_EQ(open(mode::write, creation::open_existing, deadline()).error(),
              std::errc::too_many_files_open);
    EXPECT_EQ(keeps.clone().error(), std::errc::too_many_files_open);
}

TEST_P(named_pipe_test, each_call_that_fails_is_told_and_leaks_nothing) {
    auto const keeps = open(mode::read).value();
    auto const before = open_descriptors();
    for (deadline const limit : {deadline(0s), deadline()}) {
        for (int n = 1;; ++n) {
            ASSERT_LT(n, 20);
            failing_calls const failing(n);
            auto const h =
                pipe_handle::named_pipe(directory, "pipe", mode::write, creation::if_needed, limit);
            if (!failing.failed()) {
                EXPECT_TRUE(h);
                break;
            }
            EXPECT_TRUE(h || h.error() == std::errc::io_error);
        }
        EXPECT_EQ(open_descriptors(), before);
    }
}

}  // namespace
}  // namespace plumb::test
