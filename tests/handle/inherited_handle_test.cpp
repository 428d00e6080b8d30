// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/inherited_handle.hpp>

#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_read_pooled.hpp>
#include <plumb/io/async_write.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"
#include "support/descriptors.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

namespace plumb::test {
namespace {

using namespace std::chrono_literals;
using thing = inherited_handle::thing;

/// While it lives, this is what the process was given as one of its standard streams.
class given {
public:
    given(int native, int as) : as_(as), before_(::dup(as)) { ::dup2(native, as); }
    given(given const&) = delete;
    given& operator=(given const&) = delete;
    ~given() {
        ::dup2(before_, as_);
        ::close(before_);
    }

private:
    int as_;
    int before_;
};

/// A terminal, and who sits there.
struct terminal {
    terminal() : user(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
        ::grantpt(user);
        ::unlockpt(user);
        std::array<char, 64> name{};
        ::ptsname_r(user, name.data(), name.size());
        program = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    }
    terminal(terminal const&) = delete;
    terminal& operator=(terminal const&) = delete;
    ~terminal() {
        ::close(user);
        ::close(program);
    }
    void type(std::string const& text) const {
        EXPECT_EQ(::write(user, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }

    int user;
    int program = -1;
};

class inherited_handle_test : public on_every_backend {
protected:
    inherited_handle adopt(int native) {
        auto h = inherited_handle::adopt(native).value();
        h.set_multiplexer(multiplexer());
        return h;
    }
    inherited_handle adopt_file(std::string const& path, int flags) {
        int const native = ::open(path.c_str(), flags | O_CLOEXEC);
        EXPECT_GE(native, 0) << path;
        return adopt(native);
    }
    template <class Sender>
    typename Sender::result_type complete(Sender const& sender) {
        record_of<Sender> told;
        auto operation = connect(sender, recorder(told));
        (void)operation.start();
        EXPECT_TRUE(drive_until([&] { return told.done(); }));
        return std::move(*told.value);
    }
    [[nodiscard]] std::string receive(inherited_handle& h) {
        return text_of(complete(async_read(h, buffer(memory), patience)));
    }

    temporary_directory files;
    std::array<std::byte, 64> memory{};
};

INSTANTIATE_TEST_SUITE_P(backends, inherited_handle_test, real_backends(), name_of_backend);

TEST_P(inherited_handle_test, a_file_is_read_where_it_stands) {
    make_file(files / "file", "one two three");
    auto h = adopt_file(files / "file", O_RDONLY);
    EXPECT_EQ(h.what(), thing::file);
    EXPECT_EQ(::lseek(static_cast<int>(h.native()), 4, SEEK_SET), 4);
    std::array<std::byte, 3> small;
    EXPECT_EQ(text_of(complete(async_read(h, buffer(small)))), "two");
    EXPECT_EQ(text_of(h.read(buffer(small), 1h)), " th");
    EXPECT_EQ(receive(h), "ree");
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(receive(h), "");
        EXPECT_EQ(text_of(h.try_read(buffer(memory))), "");
    }
    make_file(files / "file", "one two three and more");
    EXPECT_EQ(receive(h), " and more") << "the end of a file is where it ends now";
}

TEST_P(inherited_handle_test, a_file_is_written_where_it_stands) {
    make_file(files / "file", "0123456789");
    auto h = adopt_file(files / "file", O_WRONLY);
    EXPECT_EQ(complete(async_write(h, bytes_of("ab"))).bytes_transferred(), 2u);
    EXPECT_EQ(h.write(bytes_of("cd")).bytes_transferred(), 2u);
    EXPECT_EQ(h.write(bytes_of("ef"), 1h).bytes_transferred(), 2u);
    std::string const one = "g";
    std::string const two = "hi";
    std::array<const_buffer, 2> const list{bytes_of(one), bytes_of(two)};
    EXPECT_EQ(complete(async_write(h, const_buffers(list))).bytes_transferred(), 3u);
    EXPECT_EQ(content_of(files / "file"), "abcdefghi9");
    EXPECT_EQ(h.read(buffer(memory)).error(), std::errc::bad_file_descriptor);
}

TEST_P(inherited_handle_test, devices_are_read_and_written) {
    auto null = adopt_file("/dev/null", O_RDWR);
    EXPECT_EQ(null.what(), thing::device);
    EXPECT_EQ(receive(null), "");
    EXPECT_EQ(complete(async_write(null, bytes_of("hello"))).bytes_transferred(), 5u);
    EXPECT_EQ(null.write(bytes_of("hello"), patience).bytes_transferred(), 5u);
    auto zero = adopt_file("/dev/zero", O_RDONLY);
    EXPECT_EQ(receive(zero), std::string(64, '\0'));
    EXPECT_EQ(text_of(zero.read(buffer(memory), 1h)), std::string(64, '\0'));
    auto full = adopt_file("/dev/full", O_WRONLY);
    EXPECT_EQ(complete(async_write(full, bytes_of("x"))).error(), std::errc::no_space_on_device);
    EXPECT_EQ(full.write(bytes_of("x")).error(), std::errc::no_space_on_device);
}

TEST_P(inherited_handle_test, what_cannot_be_read_in_order_is_refused) {
    int const directory = ::open(files.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_EQ(inherited_handle::adopt(directory).error(), error::wrong_kind);
    EXPECT_EQ(::close(directory), 0) << "it was closed";
}

TEST_P(inherited_handle_test, pooled_reads_take_from_files_and_pipes) {
    make_file(files / "file", "content");
    auto file = adopt_file(files / "file", O_RDONLY);
    auto const read = complete(async_read_pooled(file, 4096));
    ASSERT_TRUE(read);
    EXPECT_EQ(std::string(reinterpret_cast<char const*>(read->data()), read->size()), "content");
}

// Terminals.

TEST_P(inherited_handle_test, a_terminal_gives_each_line_when_it_is_there) {
    terminal const t;
    auto h = adopt(::dup(t.program));
    EXPECT_EQ(h.what(), thing::terminal);
    int const before = ::fcntl(t.program, F_GETFL);
    record_of<async_read> told;
    auto reading = connect(async_read(h, buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    settle();
    t.type("no line yet");
    settle();
    EXPECT_TRUE(told.untold());
    t.type(" but now\nsecond\nthird\n");
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(text_of(*told.value), "no line yet but now\n");
    EXPECT_EQ(receive(h), "second\n");
    EXPECT_EQ(text_of(h.read(buffer(memory), patience)), "third\n");
    EXPECT_EQ(h.read(buffer(memory), 1ms).error(), std::errc::timed_out);
    t.type("\x04");
    EXPECT_EQ(receive(h), "") << "control-D";
    t.type("after\n");
    EXPECT_EQ(receive(h), "after\n");
    EXPECT_EQ(::fcntl(t.program, F_GETFL), before);
}

TEST_P(inherited_handle_test, a_terminal_as_standard_input_never_waits_and_keeps_its_flags) {
    terminal const t;
    given const as_input(t.program, STDIN_FILENO);
    int const before = ::fcntl(t.program, F_GETFL);
    auto h = inherited_handle::standard_input().value();
    h.set_multiplexer(multiplexer());
    EXPECT_NE(::fcntl(static_cast<int>(h.native()), F_GETFL) & O_NONBLOCK, 0)
        << "opened again, for its own";
    record_of<async_read> told;
    auto reading = connect(async_read(h, buffer(memory)), recorder(told));
    ASSERT_EQ(reading.start(), io_status::pending);
    t.type("one\ntwo\n");
    ASSERT_TRUE(drive_until([&] { return told.done(); }));
    EXPECT_EQ(text_of(*told.value), "one\n");
    EXPECT_EQ(receive(h), "two\n");
    t.type("\x04");
    EXPECT_EQ(receive(h), "");
    EXPECT_EQ(::fcntl(t.program, F_GETFL), before);
}

TEST_P(inherited_handle_test, a_terminal_that_does_not_read_makes_only_its_writer_wait) {
    terminal const t;
    given const as_output(t.program, STDOUT_FILENO);
    auto h = inherited_handle::standard_output().value();
    h.set_multiplexer(multiplexer());
    std::string const line(4096, 'x');
    std::size_t written = 0;
    for (int i = 0; i < 1000; ++i) {
        auto const done = complete(async_write(h, bytes_of(line), 5ms));
        if (!done) {
            EXPECT_EQ(done.error(), std::errc::timed_out);
            break;
        }
        written += done.bytes_transferred();
    }
    EXPECT_GT(written, 0u);
    EXPECT_LT(written, 1000 * line.size());
    std::array<char, 4096> shown;
    std::size_t seen = 0;
    while (seen < written) {
        auto const n = ::read(t.user, shown.data(), shown.size());
        ASSERT_GT(n, 0);
        seen += static_cast<std::size_t>(n);
    }
    EXPECT_TRUE(complete(async_write(h, bytes_of("again"), patience)));
}

// The standard streams.

TEST_P(inherited_handle_test, closing_a_standard_stream_leaves_the_process_its_own) {
    make_file(files / "file", "content");
    int const file = ::open((files / "file").c_str(), O_RDONLY | O_CLOEXEC);
    given const as_input(file, STDIN_FILENO);
    ::close(file);
    auto const before = open_descriptors();
    {
        auto h = inherited_handle::standard_input().value();
        EXPECT_NE(h.native(), STDIN_FILENO);
        EXPECT_NE(::fcntl(static_cast<int>(h.native()), F_GETFD) & FD_CLOEXEC, 0);
        h.set_multiplexer(multiplexer());
        EXPECT_EQ(receive(h), "content");
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_EQ(::lseek(STDIN_FILENO, 0, SEEK_CUR), 7) << "the same open file";
}

TEST_P(inherited_handle_test, a_socket_as_standard_input_is_read_and_written) {
    auto pair = stream_socket_handle::socket_pair().value();
    given const as_input(static_cast<int>(pair.second.native()), STDIN_FILENO);
    auto h = inherited_handle::standard_input().value();
    EXPECT_EQ(h.what(), thing::stream_socket);
    h.set_multiplexer(multiplexer());
    ASSERT_TRUE(pair.first.write(bytes_of("ping")));
    EXPECT_EQ(receive(h), "ping");
    ASSERT_TRUE(complete(async_write(h, bytes_of("pong"))));
    EXPECT_EQ(text_of(pair.first.read(buffer(memory), patience)), "pong");
}

TEST_P(inherited_handle_test, a_process_without_the_stream_is_told) {
    int const before = ::dup(STDIN_FILENO);
    ::close(STDIN_FILENO);
    EXPECT_EQ(inherited_handle::standard_input().error(), std::errc::bad_file_descriptor);
    ::dup2(before, STDIN_FILENO);
    ::close(before);
    full_descriptor_table const full;
    EXPECT_EQ(inherited_handle::standard_error().error(), std::errc::too_many_files_open);
}

}  // namespace
}  // namespace plumb::test
