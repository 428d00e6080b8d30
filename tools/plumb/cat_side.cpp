// SPDX-License-Identifier: Apache-2.0
#include "cat_side.hpp"

#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_connect.hpp>
#include <plumb/io/async_read.hpp>
#include <plumb/io/async_receive.hpp>
#include <plumb/io/async_wait.hpp>

#include "tell.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace plumb;
using namespace std::chrono_literals;

namespace {

using kind = cat_address::kind_type;
using thing = inherited_handle::thing;

/// Larger than any datagram of UDP; a larger one of a unix socket is an error.
constexpr std::size_t most_in_a_datagram = 65536;

/// A standard stream of the process, which closing the handle closes; a terminal by other means than its flags.
result<inherited_handle> take_standard(native_handle native,
                                       result<inherited_handle> (*another)() noexcept) {
    auto taken = inherited_handle::adopt(native);
    if (taken && taken->what() == thing::terminal) {
        (void)taken->release();
        return another();
    }
    return taken;
}

}  // namespace

cat_side::cat_side(cat_address address, bool source, bool two_ways)
    : address_(std::move(address)), source_(source) {
    if (is_standard() && (source || two_ways)) {
        input_ = check(take_standard(STDIN_FILENO, inherited_handle::standard_input), "read from");
        reader_ = &input_;
    }
    if (is_standard() && (!source || two_ways)) {
        output_ =
            check(take_standard(STDOUT_FILENO, inherited_handle::standard_output), "write to");
        writer_ = &output_;
    }
}

cat_side::~cat_side() {
    if (made_socket_file_) {
        ::unlink(std::string(address_.where.path()).c_str());
    }
}

void cat_side::fail(std::string_view doing, std::error_code why) const {
    throw std::system_error(why, fmt::format("cannot {} {}", doing, name(doing == "read from")));
}

std::string_view cat_side::name(bool read) const noexcept {
    if (is_standard()) {
        return read ? "standard input" : "standard output";
    }
    return address_.text;
}

template <class T>
T cat_side::check(result<T>&& r, std::string_view doing) const {
    if (!r) {
        fail(doing, r.error());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*r);
    }
}

task<> cat_side::open(deadline limit) {
    switch (address_.kind) {
    case kind::standard:
        break;
    case kind::file:
        co_await open_file(limit);
        break;
    case kind::pipe:
        co_await open_pipe(limit);
        break;
    case kind::connect:
        co_await connect(limit);
        break;
    case kind::listen:
        co_await accept(limit);
        break;
    case kind::datagrams:
        open_datagrams();
        if (address_.where.family() == endpoint::family_type::unix_domain) {
            // Who has no name can't be answered.
            check(datagrams_.bind(endpoint::unix_unnamed()), "connect to");
        }
        check(datagrams_.connect(address_.where), "connect to");
        break;
    case kind::datagrams_of_first_sender:
        open_datagrams();
        co_await receive_first(limit);
        break;
    }
}

/// Whatever has the name: a named pipe and a device too.
task<> cat_side::open_file(deadline limit) {
    std::error_code unknown;
    auto const is = std::filesystem::status(address_.path, unknown).type();
    if (is == std::filesystem::file_type::fifo) {
        co_await open_pipe(limit);
        co_return;
    }
    if (is == std::filesystem::file_type::directory) {
        fail("open", std::make_error_code(std::errc::is_a_directory));
    }
    auto file = check(source_ ? plumb::file({}, address_.path)
                              : plumb::file({}, address_.path, file_handle::mode::write,
                                            file_handle::creation::if_needed),
                      "open");
    input_ = check(inherited_handle::adopt(file.native()), "open");
    (void)file.release();
    take_end(input_);
}

task<> cat_side::open_pipe(deadline limit) {
    auto const end = source_ ? pipe_handle::mode::read : pipe_handle::mode::write;
    auto const now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
    auto const last = limit.due_after(now());
    for (;;) {
        auto opened =
            pipe_handle::named_pipe({}, address_.path, end, pipe_handle::creation::if_needed, 0s);
        bool const nobody_reads = !opened && opened.error() == std::errc::timed_out;
        if (!nobody_reads || now() >= last) {
            pipe_ = check(std::move(opened), "open");
            break;
        }
        check(co_await co_wait(5ms), "open");
    }
    take_end(pipe_);
}

task<> cat_side::connect(deadline limit) {
    auto opened = stream_socket_handle::stream_socket(address_.where.family());
    stream_ = check(std::move(opened), "connect to");
    auto const connected = co_await stream_.co_connect(address_.where, limit);
    check(result<void>(connected), "connect to");
    (void)stream_.set_no_delay(true);
    take(stream_);
}

task<> cat_side::accept(deadline limit) {
    auto listener = check(listen_socket_handle::listen(address_.where), "listen on");
    made_socket_file_ = !address_.where.path().empty();
    auto const where = check(listener.local(), "listen on");
    tell("plumb cat: listening on {}\n", where.to_string());
    auto accepted = co_await listener.co_accept(limit);
    while (!accepted && accepted.error() == std::errc::connection_aborted) {
        accepted = co_await listener.co_accept(limit);
    }
    stream_ = check(std::move(accepted), "accept from");
    (void)stream_.set_no_delay(true);
    take(stream_);
}

void cat_side::open_datagrams() {
    datagrams_ = check(datagram_socket_handle::datagram_socket(address_.where.family()), "open");
    take(datagrams_);
}

/// From then on it hears and answers only the one who sent first. A unix socket without a name can't be answered, nor
/// told from others.
task<> cat_side::receive_first(deadline limit) {
    check(datagrams_.bind(address_.where), "listen on");
    made_socket_file_ = !address_.where.path().empty();
    auto const where = check(datagrams_.local(), "listen on");
    tell("plumb cat: listening on {}\n", where.to_string());
    first_.resize(most_in_a_datagram);
    auto got = co_await datagrams_.co_receive(buffer(first_), limit);
    auto const datagram = check(std::move(got), "read from");
    first_.resize(datagram.buffers.bytes());
    first_sender_ = datagram.from;
    if (first_sender_ != endpoint::unix_unnamed()) {
        check(datagrams_.connect(first_sender_), "connect to");
    }
}

task<io_result<buffers>> cat_side::read(buffer room) {
    if (address_.kind != kind::datagrams_of_first_sender) {
        co_return co_await reader_->co_read(room);
    }
    // What others sent before it was connected to the first one is still there.
    for (;;) {
        auto got = co_await datagrams_.co_receive(room);
        if (!got) {
            co_return got.error();
        }
        if (got->from == first_sender_) {
            co_return got->buffers;
        }
    }
}

bool cat_side::is_file() const noexcept {
    return address_.kind == kind::file && input_.is_open() && input_.what() == thing::file;
}

file_handle cat_side::file() const {
    auto another = check(input_.clone(), "use");
    return file_handle::adopt(check(another.release(), "use"));
}

void cat_side::go_to(extent_type position) {
    if (::lseek(input_.native(), static_cast<off_t>(position), SEEK_SET) < 0) {
        fail("use", error_from_system(errno));
    }
}

void cat_side::make_empty() {
    // What is cut off to nothing is stored when it is closed, by some file systems, so not without need.
    struct stat about{};
    if (is_file() && (::fstat(input_.native(), &about) != 0 || about.st_size != 0) &&
        ::ftruncate(input_.native(), 0) != 0) {
        fail("write to", error_from_system(errno));
    }
}

void cat_side::refuse_same_file(cat_side const& to) const {
    struct stat read{};
    struct stat written{};
    if (::fstat(reader_->native(), &read) == 0 && ::fstat(to.writer_->native(), &written) == 0 &&
        S_ISREG(read.st_mode) && read.st_dev == written.st_dev && read.st_ino == written.st_ino) {
        throw std::runtime_error(
            fmt::format("{} and {} are the same file", name(true), to.name(false)));
    }
}

bool cat_side::writes_to_terminal() const noexcept {
    return (output_.is_open() && output_.what() == thing::terminal) ||
           (!source_ && input_.is_open() && input_.what() == thing::terminal);
}

void cat_side::end_writing() {
    if (has_datagrams()) {
        return;
    }
    if (stream_.is_open()) {
        // Who is gone already needs not be told.
        (void)stream_.shutdown_write();
        return;
    }
    if (writer_ == &output_ && output_.what() == thing::stream_socket) {
        // The input may be the same socket, which closing this would leave open.
        if (auto native = output_.release()) {
            if (auto socket = stream_socket_handle::adopt(*native)) {
                (void)socket->shutdown_write();
            }
        }
        return;
    }
    check(writer_->close(), "write to");
}

task<> cat_side::await_close(std::chrono::steady_clock::time_point limit) {
    std::array<std::byte, 4096> dropped;
    while (stream_.is_open() && std::chrono::steady_clock::now() < limit) {
        auto const got = co_await stream_.co_read(buffer(dropped), limit);
        if (!got || got.bytes_transferred() == 0) {
            break;
        }
    }
}
