// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/base/deadline.hpp>
#include <plumb/handle/datagram_socket_handle.hpp>
#include <plumb/handle/file_handle.hpp>
#include <plumb/handle/inherited_handle.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/task/task.hpp>

#include "cat_address.hpp"

#include <chrono>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

/// One side of `plumb cat`: what it is read from and written to by, once it is open.
///
/// Standard streams are taken when it is made, before anything else can get their numbers.
/// Threads: one. What fails throws a `std::system_error` that names the side.
class cat_side {
public:
    /// @param source    whether it is the side that is read from, where it can't be both
    /// @param two_ways  whether it is to be both
    cat_side(cat_address address, bool source, bool two_ways);
    cat_side(cat_side const&) = delete;
    cat_side& operator=(cat_side const&) = delete;
    ~cat_side();

    /// Waits for the other end, where there is one.
    /// @param limit  how long, of the steady clock
    plumb::task<> open(plumb::deadline limit);

    /// Whether opening it calls a peer, or waits for one to call.
    [[nodiscard]] bool calls() const noexcept {
        return address_.kind == cat_address::kind_type::connect;
    }
    [[nodiscard]] bool is_called() const noexcept {
        return address_.kind == cat_address::kind_type::listen ||
               address_.kind == cat_address::kind_type::datagrams_of_first_sender;
    }

    plumb::task<plumb::io_result<plumb::buffers>> read(plumb::buffer room);
    /// Null where it isn't written.
    [[nodiscard]] plumb::io_handle* writer() noexcept { return writer_; }
    /// Whether each read and write is a message, and none of them the end.
    [[nodiscard]] bool has_datagrams() const noexcept { return datagrams_.is_open(); }
    /// A file with positions, that can be copied at once.
    [[nodiscard]] bool is_file() const noexcept;
    /// Another handle of the file, which shares its position.
    [[nodiscard]] plumb::file_handle file() const;
    /// The next read or write of the file is there.
    void go_to(plumb::extent_type position);
    /// Makes it empty, if it is a file that was named.
    void make_empty();
    /// To write to what is being read would destroy it, or never end.
    void refuse_same_file(cat_side const& to) const;
    [[nodiscard]] bool writes_to_terminal() const noexcept;
    /// Came with the other end: is to be read first. Once.
    [[nodiscard]] std::vector<std::byte> take_first() noexcept { return std::move(first_); }

    /// Tells the other end that nothing more will be written.
    void end_writing();
    /// Drops what a peer sends that is only written to: closing before would tell it that the connection is broken, and
    /// it might lose what it was sent.
    plumb::task<> await_close(std::chrono::steady_clock::time_point limit);

    /// @param doing  to what, such as "read from"
    [[noreturn]] void fail(std::string_view doing, std::error_code why) const;

private:
    [[nodiscard]] bool is_standard() const noexcept {
        return address_.kind == cat_address::kind_type::standard;
    }
    [[nodiscard]] std::string_view name(bool read) const noexcept;
    plumb::task<> open_file(plumb::deadline limit);
    plumb::task<> open_pipe(plumb::deadline limit);
    plumb::task<> connect(plumb::deadline limit);
    plumb::task<> accept(plumb::deadline limit);
    plumb::task<> receive_first(plumb::deadline limit);
    void open_datagrams();
    void take(plumb::io_handle& both) noexcept { reader_ = writer_ = &both; }
    void take_end(plumb::io_handle& end) noexcept { (source_ ? reader_ : writer_) = &end; }
    template <class T>
    T check(plumb::result<T>&& r, std::string_view doing) const;

    cat_address const address_;
    bool const source_;
    bool made_socket_file_ = false;
    plumb::inherited_handle input_;  // or a file
    plumb::inherited_handle output_;
    plumb::pipe_handle pipe_;
    plumb::stream_socket_handle stream_;
    plumb::datagram_socket_handle datagrams_;
    plumb::io_handle* reader_ = nullptr;
    plumb::io_handle* writer_ = nullptr;
    std::vector<std::byte> first_;
    plumb::endpoint first_sender_;
};
