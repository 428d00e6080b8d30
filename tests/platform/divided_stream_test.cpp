// SPDX-License-Identifier: Apache-2.0
#include <plumb/io/async_read.hpp>
#include <plumb/io/io_operation_connection.hpp>

#include "support/backend.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include <sys/socket.h>

// A read ends before control data, and what comes behind them is there already: no event tells of it.
namespace plumb::test {
namespace {

class divided_stream_test : public on_every_backend {
protected:
    static int descriptor(stream_socket_handle const& s) { return static_cast<int>(s.native()); }

    /// What two reads give, of which the first waits.
    std::array<std::string, 2> two_reads(stream_socket_handle& from, auto send) {
        std::array<std::string, 2> all;
        std::array<std::byte, 64> memory{};
        for (std::string& text : all) {
            record_of<async_read> read;
            auto operation = connect(async_read(from, buffer(memory)), recorder(read));
            auto const status = operation.start();
            if (&text == &all.front()) {
                EXPECT_EQ(status, io_status::pending);
                send();
            }
            if (!drive_until([&] { return read.done(); })) {
                ADD_FAILURE() << "nothing tells of what is there";
                return all;
            }
            text = text_of(*read.value);
        }
        return all;
    }
};

INSTANTIATE_TEST_SUITE_P(backends, divided_stream_test, real_backends(), name_of_backend);

TEST_P(divided_stream_test, urgent_data_hide_nothing_that_comes_behind_them) {
    auto ends = tcp_pair();
    int const to = descriptor(ends.first);
    auto const got = two_reads(ends.second, [to] {
        EXPECT_EQ(::send(to, "abc", 3, MSG_NOSIGNAL), 3);
        EXPECT_EQ(::send(to, "!", 1, MSG_OOB | MSG_NOSIGNAL), 1);
        EXPECT_EQ(::send(to, "efg", 3, MSG_NOSIGNAL), 3);
    });
    EXPECT_EQ(got[0] + got[1], "abcefg");
}

TEST_P(divided_stream_test, descriptors_that_are_sent_along_hide_nothing) {
    auto ends = stream_socket_handle::socket_pair().value();
    ends.second.set_multiplexer(multiplexer());
    int const to = descriptor(ends.first);
    auto const got = two_reads(ends.second, [to] {
        EXPECT_EQ(::send(to, "abc", 3, MSG_NOSIGNAL), 3);
        char byte = 'd';
        iovec text{&byte, 1};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
        msghdr message{};
        message.msg_iov = &text;
        message.msg_iovlen = 1;
        message.msg_control = room.data();
        message.msg_controllen = room.size();
        cmsghdr* const sent = CMSG_FIRSTHDR(&message);
        sent->cmsg_level = SOL_SOCKET;
        sent->cmsg_type = SCM_RIGHTS;
        sent->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(sent), &to, sizeof(int));
        EXPECT_EQ(::sendmsg(to, &message, MSG_NOSIGNAL), 1);
        EXPECT_EQ(::send(to, "efg", 3, MSG_NOSIGNAL), 3);
    });
    EXPECT_EQ(got[0] + got[1], "abcdefg");
}

}  // namespace
}  // namespace plumb::test
