// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>

#include <string>
#include <string_view>

/// One of the two things that `plumb cat` connects, as it was named on the command line.
struct cat_address {
    enum class kind_type {
        standard,
        file,
        pipe,
        connect,
        listen,
        datagrams,
        datagrams_of_first_sender,
    };

    /// Throws `std::invalid_argument` that says what is wrong with the text.
    static cat_address parse(std::string_view text);

    /// Whether it can be read and written.
    [[nodiscard]] bool has_two_ways() const noexcept {
        return kind != kind_type::file && kind != kind_type::pipe;
    }

    kind_type kind = kind_type::standard;
    /// As it was given, for messages.
    std::string text;
    /// Of a file or a pipe.
    std::string path;
    /// Of a socket.
    plumb::endpoint where;
};
