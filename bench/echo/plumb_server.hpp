// SPDX-License-Identifier: Apache-2.0
//
// What plumb's echo servers share: the command line, the accepting coroutine, the end.
#pragma once

#include "echo.h"

#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

class server {
public:
    using handler = plumb::task<> (*)(plumb::stream_socket_handle, server&);

    server(plumb::io_context& context, std::uint64_t most)
        : context_(context), most_(most), stop_(context.get_executor()) {}

    void count_request() {
        if (++requests_ == most_) {
            stop_.request_stop();
        }
    }
    [[nodiscard]] std::uint64_t requests() const { return requests_; }
    plumb::stop_source& stop() { return stop_; }

    plumb::task<> accept_all(plumb::listen_socket_handle listener, handler handle) {
        using namespace std::chrono_literals;
        while (!stop_.stop_requested()) {
            auto accepted = co_await listener.co_accept();
            if (!accepted) {
                (void)co_await plumb::co_wait(10ms);  // such as a full descriptor table
                continue;
            }
            if (!accepted->set_no_delay(true)) {
                continue;  // the connection is gone already
            }
            plumb::async_run(context_.get_executor(), handle(std::move(*accepted), *this),
                             stop_.token());
        }
    }

private:
    plumb::io_context& context_;
    std::uint64_t requests_ = 0;
    std::uint64_t most_;
    plumb::stop_source stop_;
};

struct end_on_signal : plumb::signal_work {
    explicit end_on_signal(server& s)
        : signal_work([](plumb::signal_work& w) noexcept {
              static_cast<end_on_signal&>(w).ended.stop().request_stop();
          }),
          ended(s) {}
    server& ended;
};

inline plumb::io_multiplexer* signalled_multiplexer = nullptr;
inline end_on_signal* signalled_end = nullptr;

inline int serve(int argc, char** argv, server::handler handle) {
    echo_options options{};
    options.multiplexer = "";
    echo_parse_options(argc, argv, &options);
    if (*options.multiplexer != '\0') {
        setenv("PLUMB_MULTIPLEXER", options.multiplexer, 1);
    }
    auto multiplexer = plumb::io_multiplexer::best_available(1);
    auto listener = plumb::listen_socket_handle::listen(plumb::endpoint::loopback_v4(options.port));
    if (!multiplexer || !listener) {
        std::fprintf(stderr, "%s\n",
                     (multiplexer ? listener.error() : multiplexer.error()).message().c_str());
        return 1;
    }
    plumb::io_context context(std::move(*multiplexer));
    server served(context, options.max_requests);
    end_on_signal end(served);
    signalled_multiplexer = &context.multiplexer();
    signalled_end = &end;
    std::signal(SIGTERM, [](int) { signalled_multiplexer->post(*signalled_end); });
    echo_print_listening(listener->local().value().port());
    plumb::async_run(context.get_executor(), served.accept_all(std::move(*listener), handle),
                     served.stop().token());
    auto const ran = context.run();
    std::uint64_t const turns = context.multiplexer().counters().turns;
    echo_print_result(served.requests(), &turns);
    return ran ? 0 : 1;
}
