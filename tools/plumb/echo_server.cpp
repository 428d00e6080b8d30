// SPDX-License-Identifier: Apache-2.0
#include "echo_server.hpp"

#include <plumb/aio/open_connection.hpp>
#include <plumb/handle/listen_socket_handle.hpp>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

echo_server::echo_server(echo_options options)
    : options_(std::move(options)),
      left_(options_.max_requests),
      shares_(options_.threads),
      all_(static_cast<std::ptrdiff_t>(options_.threads)) {}

bool echo_server::failed() const noexcept {
    return std::ranges::any_of(shares_, [](share const& s) { return s.failure != nullptr; });
}

void echo_server::request_stop() noexcept {
    for (share const& s : shares_) {
        s.loop->request_stop();
    }
}

void echo_server::make_loop(std::size_t index) noexcept {
    try {
        std::size_t const all = options_.max_connections;
        std::size_t const rest = index < all % options_.threads ? 1 : 0;
        shares_[index].loop =
            std::make_unique<echo_loop>(*this, options_, all / options_.threads + rest);
    } catch (...) {
        shares_[index].failure = std::current_exception();
    }
}

void echo_server::run_loop(std::size_t index) noexcept {
    try {
        shares_[index].loop->run();
    } catch (...) {
        shares_[index].failure = std::current_exception();
        request_stop();
    }
}

void echo_server::end_loop(std::size_t index) noexcept {
    if (shares_[index].loop != nullptr) {
        shares_[index].counted = shares_[index].loop->counters();
        shares_[index].loop.reset();
    }
}

void echo_server::work_beside(std::size_t index) noexcept {
    make_loop(index);
    all_.arrive_and_wait();
    if (!failed()) {
        run_loop(index);
    }
    all_.arrive_and_wait();
    end_loop(index);
}

/// Listeners that share a port share it with those of other processes too: better to be told.
void echo_server::refuse_port_in_use() const {
    if (options_.threads > 1 && options_.port != 0) {
        auto const where = plumb::aio::endpoint_of(options_.host, options_.port);
        if (auto const alone = plumb::listen_socket_handle::listen(where); !alone) {
            throw std::system_error(alone.error(), "cannot listen on " + where.to_string());
        }
    }
}

echo_counters echo_server::serve(events const& told) {
    refuse_port_in_use();
    make_loop(0);
    if (shares_[0].failure != nullptr) {
        std::rethrow_exception(shares_[0].failure);
    }
    // Where the system chose the port, the others share that one.
    options_.port = shares_[0].loop->local().port();
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < shares_.size(); ++i) {
        try {
            others.emplace_back([this, i] { work_beside(i); });
        } catch (std::system_error const& refused) {
            shares_[i].failure =
                std::make_exception_ptr(std::system_error(refused.code(), "cannot start a thread"));
            all_.arrive_and_drop();
        }
    }
    all_.arrive_and_wait();
    if (!failed()) {
        told.listening(shares_[0].loop->local(), shares_[0].loop->kind());
        run_loop(0);
    }
    all_.arrive_and_wait();
    told.ended();
    end_loop(0);
    others.clear();

    echo_counters sum;
    for (share const& s : shares_) {
        if (s.failure != nullptr) {
            std::rethrow_exception(s.failure);
        }
        sum += s.counted;
    }
    return sum;
}
