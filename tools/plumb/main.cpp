// SPDX-License-Identifier: Apache-2.0
//
// The `plumb` command-line tool. Exit codes: 0 success, 1 it could not be done, 2 wrong usage, 128 and the number of a
// signal that has cut a copy off.
#include "cat.hpp"
#include "cat_options.hpp"
#include "echo_options.hpp"
#include "echo_server.hpp"
#include "stop_signals.hpp"
#include "tell.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace {

enum exit_code { success = 0, failure = 1, usage = 2, of_signals = 128 };

/// A connection needs a descriptor; the soft limit is often 1024.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/// At once, also where stdout is a pipe; that nobody listens is no reason to serve nobody.
void say(std::string const& line) {
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
}

int serve_echo(echo_options const& options) {
    raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN);  // stdout may be a pipe that nobody reads any more
    stop_signals signals;
    echo_server server(options);
    echo_server::events told;
    told.listening = [&](plumb::endpoint const& where, plumb::multiplexer_kind kind) {
        signals.deliver_to(server);
        say(fmt::format("listening on {} ({}, {} thread{})\n", where.to_string(), to_string(kind),
                        options.threads, options.threads == 1 ? "" : "s"));
    };
    told.ended = [&] { signals.block(); };
    echo_counters const all = server.serve(told);
    say(fmt::format("served {} connections, {} requests, {} bytes; "
                    "{} failed, {} reset, {} idle, {} cut off\n",
                    all.connections, all.requests, all.bytes, all.failed, all.reset, all.idle,
                    all.cut_off));
    return success;
}

/// A process may be started without it: nothing else is to get its number.
void keep_standard_error() {
    if (fcntl(STDERR_FILENO, F_GETFD) < 0) {
        int const nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0 && nowhere != STDERR_FILENO) {
            dup2(nowhere, STDERR_FILENO);
            close(nowhere);
        }
    }
}

int connect_both(cat_options const& options) {
    keep_standard_error();
    signal(SIGPIPE, SIG_IGN);  // stderr may be a pipe that nobody reads any more
    stop_signals signals;
    cat both(options);
    signals.deliver_to(both);
    bool all = false;
    try {
        all = both.run();
    } catch (...) {
        signals.block();
        throw;
    }
    signals.block();
    return all ? success : of_signals + signals.number();
}

/// Adds an option in seconds; refuses what is no time.
CLI::Option* add_seconds(CLI::App& command, std::string const& name,
                         std::chrono::nanoseconds& value, std::string const& description) {
    auto const check = [](std::string& text) {
        double seconds = -1;
        bool const is_time =
            CLI::detail::lexical_cast(text, seconds) && seconds >= 0 && seconds <= 1e9;
        return is_time ? std::string() : "'" + text + "' is not a number of seconds up to 1e9";
    };
    auto const set = [&value](double seconds) {
        value = std::chrono::ceil<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
    };
    return command.add_option_function<double>(name, set, description)
        ->check(CLI::Validator(check, ""))
        ->type_name("SECONDS");
}

void add_multiplexer(CLI::App& command, std::optional<plumb::multiplexer_kind>& value) {
    std::map<std::string, std::optional<plumb::multiplexer_kind>> const kinds{
        {"best", std::nullopt},
        {"epoll", plumb::multiplexer_kind::epoll},
        {"io_uring", plumb::multiplexer_kind::io_uring}};
    command
        .add_option_function<std::string>(
            "--multiplexer", [&value, kinds](std::string const& name) { value = kinds.at(name); },
            "How to wait for i/o: best (what works here), epoll or io_uring")
        ->check(CLI::IsMember({"best", "epoll", "io_uring"}).description(""))
        ->type_name("NAME")
        ->default_str("best");
}

CLI::App* add_cat(CLI::App& app, cat_options& options) {
    CLI::App* const cat =
        app.add_subcommand("cat", "Connect two of standard streams, files, pipes and sockets");
    cat->footer(
        "Each side is one of\n"
        "  -                               standard input and output\n"
        "  file:PATH                       a file, or what else has the name; made empty if "
        "SECOND\n"
        "  pipe:PATH                       a named pipe, made where there is none\n"
        "  tcp:HOST:PORT                   a connection; HOST is numeric, or localhost\n"
        "  tcp-listen:[HOST:]PORT          the first connection; 0 lets the system choose\n"
        "  unix:PATH  unix-listen:PATH     the same by a path, or by @ and a name\n"
        "  udp:HOST:PORT                   datagrams to and from there\n"
        "  udp-listen:[HOST:]PORT          datagrams from and to whoever sends first\n"
        "  unix-datagram:PATH  unix-datagram-listen:PATH\n"
        "                                  the same by a path, or by @ and a name; up to 64 KiB\n"
        "Bytes go from FIRST to SECOND, and also back where both can: files and pipes have one\n"
        "direction. Where the input of one direction ends, so does its output; the other goes on.\n"
        "Datagrams have no end: --one-way or --timeout ends what waits for them.\n"
        "SIGINT and SIGTERM end it: what was read is written first. The exit code then is 130 or "
        "143,\n"
        "and 0 if every direction had already ended.");
    auto const add_side = [cat](char const* name, cat_address& value, char const* description) {
        auto const set = [name, &value](std::string const& text) {
            try {
                value = cat_address::parse(text);
            } catch (std::invalid_argument const& wrong) {
                throw CLI::ValidationError(name, wrong.what());
            }
        };
        cat->add_option_function<std::string>(name, set, description)
            ->required()
            ->type_name("SIDE");
    };
    add_side("FIRST", options.first, "What is read first");
    add_side("SECOND", options.second, "What that is written to");
    cat->add_flag("--one-way", options.one_way, "Only from FIRST to SECOND");
    add_seconds(*cat, "--timeout", options.timeout,
                "How long to wait for a connection or another end, and how long nothing may\n"
                "move. 0: forever")
        ->default_str("0");
    add_multiplexer(*cat, options.multiplexer);
    using progress = cat_options::progress_type;
    std::map<std::string, progress> const kinds{
        {"auto", progress::automatic}, {"always", progress::always}, {"never", progress::never}};
    cat->add_option_function<std::string>(
           "--progress",
           [&options, kinds](std::string const& name) { options.progress = kinds.at(name); },
           "Whether to show bytes and rate on stderr: auto (on a terminal), always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
        ->type_name("WHEN")
        ->default_str("auto");
    return cat;
}

CLI::App* add_echo(CLI::App& app, echo_options& options) {
    CLI::App* const echo = app.add_subcommand("echo", "Echo what peers send over TCP");
    echo->footer("SIGINT and SIGTERM stop it: it accepts no more, finishes what is in flight, and\n"
                 "prints what it has served. A second signal ends it at once.");
    echo->add_option("--host", options.host, "Numeric address to listen on")
        ->type_name("ADDRESS")
        ->capture_default_str();
    echo->add_option("--port", options.port, "Port to listen on; 0 lets the system choose")
        ->check(CLI::Range(0, 65535).description(""))
        ->type_name("PORT")
        ->capture_default_str();
    add_multiplexer(*echo, options.multiplexer);
    echo->add_option("--threads", options.threads, "Loops, each on a thread of its own")
        ->check(CLI::Range(1, 1024).description(""))
        ->type_name("N")
        ->capture_default_str();
    echo->add_option("--max-connections", options.max_connections,
                     "Connections served at once, shared out evenly to the threads;\n"
                     "more wait. 0: no limit")
        ->check(CLI::NonNegativeNumber.description(""))
        ->type_name("N")
        ->capture_default_str();
    echo->add_option("--max-requests", options.max_requests,
                     "End after so many echoed messages. 0: never")
        ->check(CLI::NonNegativeNumber.description(""))
        ->type_name("N")
        ->capture_default_str();
    add_seconds(*echo, "--idle-timeout", options.idle_timeout,
                "Close a connection on which nothing came or went for so long.\n0: never")
        ->default_str("0");
    add_seconds(*echo, "--grace", options.grace,
                "How long what is in flight may take to end after a stop")
        ->default_str("5");
    echo->callback([&options] {
        if (options.max_connections != 0 && options.max_connections < options.threads) {
            throw CLI::ValidationError("--max-connections", "each thread needs at least one");
        }
    });
    return echo;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("i/o from the system call to co_await", "plumb");
    app.set_version_flag("--version", "plumb " PLUMB_VERSION);
    app.failure_message([](CLI::App const*, CLI::Error const& e) {
        return fmt::format(
            "plumb: {}\nplumb --help tells more, and so does --help after a subcommand.\n",
            e.what());
    });
    echo_options for_echo;
    cat_options for_cat;
    CLI::App* const echo = add_echo(app, for_echo);
    CLI::App* const cat = add_cat(app, for_cat);
    app.require_subcommand(0, 1);
    try {
        app.parse(argc, argv);
        if (!echo->parsed() && !cat->parsed()) {
            throw CLI::RequiredError("A subcommand");
        }
    } catch (CLI::ParseError const& e) {
        return app.exit(e) == 0 ? success : usage;
    }
    try {
        return cat->parsed() ? connect_both(for_cat) : serve_echo(for_echo);
    } catch (std::exception const& e) {
        tell("plumb {}: {}\n", cat->parsed() ? "cat" : "echo", e.what());
        return failure;
    }
}
