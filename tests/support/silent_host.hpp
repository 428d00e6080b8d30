// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/handle/stream_socket_handle.hpp>

#include <chrono>
#include <utility>
#include <vector>

namespace plumb::test {

/// A listener whose backlog is full, so that a connect to it stays without answer.
class silent_host {
public:
    silent_host()
        : listener_(
              listen_socket_handle::listen(endpoint::loopback_v4(0), {.backlog = 0}).value()) {
        for (int i = 0; i < 3; ++i) {
            auto s = stream_socket_handle::stream_socket(endpoint::family_type::ipv4).value();
            auto const done = s.connect(where(), std::chrono::milliseconds(50));
            waiting_.push_back(std::move(s));
            if (!done) {
                return;
            }
        }
    }

    [[nodiscard]] endpoint where() const { return listener_.local().value(); }

private:
    listen_socket_handle listener_;
    std::vector<stream_socket_handle> waiting_;
};

}  // namespace plumb::test
