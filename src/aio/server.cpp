// SPDX-License-Identifier: Apache-2.0
#include <plumb/aio/server.hpp>

#include <plumb/aio/open_connection.hpp>
#include <plumb/io/async_accept.hpp>
#include <plumb/io/async_wait.hpp>
#include <plumb/io/io_context.hpp>
#include <plumb/task/async_run.hpp>
#include <plumb/task/async_stacktrace.hpp>
#include <plumb/task/cancellation.hpp>

#include "aio/notification.hpp"

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace plumb::aio {
namespace {

/// Something is full: it passes, but not at once.
bool is_shortage(std::error_code e) noexcept {
    return e == std::errc::too_many_files_open || e == std::errc::too_many_files_open_in_system ||
           e == std::errc::no_buffer_space || e == std::errc::not_enough_memory;
}

/// That one connection is gone.
bool is_of_the_connection(std::error_code e) noexcept {
    return e == std::errc::connection_aborted || e == std::errc::protocol_error ||
           e == std::errc::network_down || e == std::errc::network_unreachable ||
           e == std::errc::host_unreachable;
}

void report(std::exception_ptr const& failure, endpoint const& peer) {
    char const* what = "unknown exception";
    std::string text;
    try {
        std::rethrow_exception(failure);
    } catch (std::exception const& e) {
        text = e.what();
        what = text.c_str();
    } catch (...) {
    }
    std::fprintf(stderr, "plumb: the connection from %s failed: %s\n%s", peer.to_string().c_str(),
                 what, async_stacktrace::of(failure).to_string().c_str());
}

}  // namespace

struct server::state {
    state(handler h, listen_socket_handle l, options o) noexcept
        : handle(std::move(h)), listener(std::move(l)), settings(std::move(o)) {}

    class place;
    class serving_now;

    static void launch(std::shared_ptr<state> const& self, executor_ref where, stream connection);
    static task<> serve(std::shared_ptr<state> self);
    void failed(std::exception_ptr const& failure, endpoint const& peer);
    void stop_handlers() noexcept;
    [[nodiscard]] bool full() const noexcept {
        return settings.max_connections != 0 && count.open >= settings.max_connections;
    }

    handler handle;
    listen_socket_handle listener;
    options settings;
    counters count;
    bool closed = false;
    bool serving = false;                 // while it does, the executor of `handlers` is there
    std::optional<stop_source> handlers;  // stops them
    notification changed;                 // a connection ended, or the server was closed
};

/// One of the connections that are open; ends with the handler's coroutine, also where that is destroyed.
class server::state::place {
public:
    explicit place(std::shared_ptr<state> of) noexcept : of_(std::move(of)) { ++of_->count.open; }
    place(place&&) noexcept = default;
    place& operator=(place&&) = delete;
    ~place() {
        if (of_ != nullptr) {
            --of_->count.open;
            of_->changed.notify();
        }
    }
    [[nodiscard]] state& server() const noexcept { return *of_; }

private:
    std::shared_ptr<state> of_;
};

/// Exists with the coroutine of `serve_forever`, which may be destroyed before its end.
class server::state::serving_now {
public:
    explicit serving_now(state& of) noexcept : of_(of) { of_.serving = true; }
    serving_now(serving_now const&) = delete;
    serving_now& operator=(serving_now const&) = delete;
    ~serving_now() {
        (void)of_.listener.close();
        if (of_.count.open != 0) {
            of_.stop_handlers();
        }
        of_.serving = false;
    }

private:
    state& of_;
};

server::server(std::shared_ptr<state> s) noexcept : state_(std::move(s)) {}
server::server(server&&) noexcept = default;
server& server::operator=(server&& other) noexcept {
    state_.swap(other.state_);
    return *this;
}
server::~server() {
    if (state_ != nullptr) {
        close();
        // Handlers that run share the state, which so outlives a request that is posted to the loop.
        if (state_->count.open != 0) {
            stop_handlers();
        }
    }
}

void server::close() noexcept {
    state_->closed = true;
    (void)state_->listener.close();
    state_->changed.notify();
}

void server::stop_handlers() noexcept { state_->stop_handlers(); }

endpoint server::local() const { return state_->listener.local().value(); }
server::counters const& server::count() const noexcept { return state_->count; }

void server::state::stop_handlers() noexcept {
    if (serving) {
        handlers->request_stop();
    }
}

void server::state::launch(std::shared_ptr<state> const& self, executor_ref where,
                           stream connection) {
    auto const known = connection.socket().peer();
    auto const peer = known ? *known : endpoint();
    ++self->count.accepted;
    try {
        place taken(self);
        async_run(where, self->handle(std::move(connection)), self->handlers->token(),
                  [taken = std::move(taken), peer](task_result<void>& result) {
                      if (auto const failure = result.exception(); failure != nullptr) {
                          taken.server().failed(failure, peer);
                      }
                  });
    } catch (...) {
        self->failed(std::current_exception(), peer);
    }
}

void server::state::failed(std::exception_ptr const& failure, endpoint const& peer) {
    if (!(handlers->stop_requested() && is_cancellation(failure))) {
        ++count.failed;
        settings.on_error(failure, peer);
    }
}

task<> server::serve_forever() { return state::serve(state_); }

// Owns the state with the server and the handlers, whichever goes last.
task<> server::state::serve(std::shared_ptr<state> self) {
    io_env const& env = co_await this_env();
    require(!self->handlers.has_value(), "server::serve_forever was called twice");
    self->handlers.emplace(env.executor);
    serving_now const now(*self);
    std::error_code failure;
    while (!self->closed && !env.stop.stop_requested()) {
        if (self->full()) {
            co_await self->changed.wait();
            continue;
        }
        auto accepted = co_await self->listener.co_accept();
        if (accepted) {
            if (auto const sent_at_once = accepted->set_no_delay(true); !sent_at_once) {
                continue;  // the connection is gone already
            }
            launch(self, env.executor, stream(std::move(*accepted)));
        } else if (is_shortage(accepted.error())) {
            (void)co_await co_wait(std::chrono::milliseconds(20));
        } else if (accepted.error() != std::errc::operation_canceled &&
                   !is_of_the_connection(accepted.error())) {
            failure = accepted.error();
            break;
        }
    }
    (void)self->listener.close();
    if (env.stop.stop_requested()) {
        self->stop_handlers();
    }
    {
        auto stop_all = [&self]() noexcept { self->stop_handlers(); };
        stop_callback const on_stop(env.stop, stop_all);
        while (self->count.open != 0) {
            co_await self->changed.wait_regardless();
        }
    }
    if (failure) {
        throw_error(failure, "server::serve_forever: accept");
    }
}

task<server> start_server(server::handler handle, std::string_view host, std::uint16_t port,
                          server::options o) {
    return start_server(std::move(handle), endpoint_of(host, port), std::move(o));
}

task<server> start_server(server::handler handle, endpoint where, server::options o) {
    auto listener =
        listen_socket_handle::listen(where, {.backlog = o.backlog, .share_port = o.share_port});
    if (!listener) {
        throw_error(listener.error(), ("cannot listen on " + where.to_string()).c_str());
    }
    if (!o.on_error) {
        o.on_error = &report;
    }
    co_return server(
        std::make_shared<server::state>(std::move(handle), std::move(*listener), std::move(o)));
}

}  // namespace plumb::aio
