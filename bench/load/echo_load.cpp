// SPDX-License-Identifier: Apache-2.0
//
// Drives an echo server on 127.0.0.1: connections in ping-pong, each with one message under way.
// Every reply is compared with what was sent. Prints one line of JSON.
//
//   echo_load --port P [--connections 100] [--seconds 5 [--warmup-seconds 0.2] | --requests N]
//             [--message-bytes 106] [--think-us 0] [--watch-pid PID] [--stall-seconds 30] [--idle]
//
// `--requests` sends exactly that many and measures all of them. `--think-us` waits between a reply
// and the next message. `--watch-pid` reports the processor time that this process used in the
// measured interval, and the share of it that it was ready but had no core. `--idle` does one request on each connection, prints `idle <connections>` and
// holds them until stdin ends. Exit: 0; 1 when anything failed; 2 for wrong usage.
#include "histogram.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using plumb_bench::histogram;
using nanoseconds = std::uint64_t;

constexpr nanoseconds second = 1'000'000'000;
constexpr nanoseconds never = std::numeric_limits<nanoseconds>::max();

struct options {
    std::uint16_t port = 0;
    std::size_t connections = 100;
    double seconds = 5;
    double warmup_seconds = 0.2;
    std::uint64_t requests = 0;  // 0: as many as the seconds allow
    std::size_t message_bytes = 106;
    double think_us = 0;
    double stall_seconds = 30;
    int watch_pid = 0;
    bool idle = false;
};

struct error_counts {
    std::uint64_t connect = 0;   // could not be opened
    std::uint64_t reset = 0;     // ended by an error of the socket
    std::uint64_t short_ = 0;    // ended in the middle of, or without, an expected reply
    std::uint64_t mismatch = 0;  // other bytes, or more bytes, than were sent
    std::uint64_t stalled = 0;   // no reply for too long

    std::uint64_t total() const { return connect + reset + short_ + mismatch + stalled; }
};

struct connection {
    int descriptor = -1;
    std::uint32_t sent = 0;  // bytes of the message under way
    std::uint32_t received = 0;
    bool waiting = false;  // a message is under way
    std::uint64_t stamp = 0;
    nanoseconds started = 0;
};

[[noreturn]] void fail(char const* what) {
    std::fprintf(stderr, "echo_load: %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

nanoseconds now_by(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<nanoseconds>(now.tv_sec) * second + static_cast<nanoseconds>(now.tv_nsec);
}

nanoseconds now() { return now_by(CLOCK_MONOTONIC); }

nanoseconds to_nanoseconds(double seconds) {
    return static_cast<nanoseconds>(seconds * static_cast<double>(second));
}

/// How long the main thread of a process was ready but had no core; 0 where the kernel does not say.
nanoseconds delay_of(char const* process) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%s/schedstat", process);
    std::uintmax_t ran = 0;
    std::uintmax_t delayed = 0;
    if (std::FILE* file = std::fopen(path, "r")) {
        if (std::fscanf(file, "%ju %ju", &ran, &delayed) != 2) {
            delayed = 0;
        }
        std::fclose(file);
    }
    return delayed;
}

/// What had been used at one moment; two of them bound the measured interval.
struct moment {
    nanoseconds wall = 0;
    nanoseconds own_cpu = 0;
    nanoseconds own_delay = 0;
    nanoseconds watched_cpu = 0;
    nanoseconds watched_delay = 0;
};

class load {
public:
    explicit load(options const& wanted)
        : options_(wanted),
          think_(to_nanoseconds(wanted.think_us / 1e6)),
          message_(wanted.message_bytes),
          reply_(wanted.message_bytes + 1) {
        for (std::size_t i = 0; i < message_.size(); ++i) {
            message_[i] = static_cast<char>('a' + i % 26);
        }
        poller_ = epoll_create1(EPOLL_CLOEXEC);
        if (poller_ < 0) {
            fail("epoll_create1");
        }
        if (wanted.watch_pid != 0) {
            errno = clock_getcpuclockid(wanted.watch_pid, &watched_clock_);
            if (errno != 0) {
                fail("--watch-pid");
            }
        }
    }

    int run() {
        if (options_.idle) {
            hold_idle();
        } else {
            open_connections(0, options_.connections);
            drive();
        }
        report();
        return errors_.total() == 0 ? 0 : 1;
    }

private:
    // A wave at a time, each answered before the next, so that no accept queue overflows.
    void hold_idle() {
        constexpr std::size_t wave = 256;
        options_.requests = options_.connections;
        begin_ = read_clocks();
        for (std::size_t first = 0; first < options_.connections; first += wave) {
            std::size_t const last = std::min(first + wave, options_.connections);
            open_connections(first, last);
            for (std::size_t i = first; i < last; ++i) {
                start_request(connections_[i], now());
            }
            while (outstanding_ != 0 && wait_and_serve(never)) {
            }
        }
        end_ = read_clocks();
        std::printf("idle %zu\n", live_);
        std::fflush(stdout);
        char ignored[64];
        while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
        }
    }

    void open_connections(std::size_t first, std::size_t last) {
        connections_.resize(options_.connections);  // never grows again: events point into it
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(options_.port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int const one = 1;
        for (std::size_t i = first; i < last; ++i) {
            connection& opened = connections_[i];
            int const descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            epoll_event event{};
            event.events = EPOLLIN | EPOLLOUT | EPOLLET;
            event.data.ptr = &opened;
            if (descriptor < 0 ||
                connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
                setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
                fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0 ||
                epoll_ctl(poller_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
                if (errors_.connect++ == 0) {
                    std::perror("echo_load: cannot connect");
                }
                if (descriptor >= 0) {
                    close(descriptor);
                }
                continue;
            }
            opened.descriptor = descriptor;
            ++live_;
        }
    }

    void drive() {
        begin_ = read_clocks();
        nanoseconds measure_at = never;
        nanoseconds stop_at = never;
        if (options_.requests == 0) {
            measure_at = begin_.wall + to_nanoseconds(options_.warmup_seconds);
            stop_at = measure_at + to_nanoseconds(options_.seconds);
        }
        for (connection& each : connections_) {
            if (each.descriptor >= 0) {
                start_request(each, now());
            }
        }
        while (live_ != 0 && (outstanding_ != 0 || !thinking_.empty()) &&
               wait_and_serve(std::min(measure_at, stop_at))) {
            if (now_ >= measure_at) {
                measure_at = never;
                latencies_ = {};
                begin_ = read_clocks();
                stop_at = begin_.wall + to_nanoseconds(options_.seconds);
            } else if (now_ >= stop_at) {
                break;
            }
        }
        end_ = read_clocks();
    }

    // One turn of the loop, at most until `wake_at`. False when nothing came for too long.
    bool wait_and_serve(nanoseconds wake_at) {
        nanoseconds const waits_since = now();
        nanoseconds const give_up_at = waits_since + to_nanoseconds(options_.stall_seconds);
        wake_at = std::min(wake_at, give_up_at);
        if (!thinking_.empty()) {
            wake_at = std::min(wake_at, thinking_.front()->started);
        }
        nanoseconds const left = wake_at > waits_since ? wake_at - waits_since : 0;
        timespec const limit{static_cast<time_t>(left / second), static_cast<long>(left % second)};
        int const ready = epoll_pwait2(poller_, events_, std::size(events_), &limit, nullptr);
        if (ready < 0 && errno != EINTR) {
            fail("epoll_pwait2");
        }
        now_ = now();
        if (ready == 0 && now_ >= give_up_at && outstanding_ != 0) {
            std::fprintf(stderr, "echo_load: no reply for %.0f s\n", options_.stall_seconds);
            errors_.stalled += outstanding_;
            return false;
        }
        for (int i = 0; i < ready; ++i) {
            auto& ready_connection = *static_cast<connection*>(events_[i].data.ptr);
            if (ready_connection.waiting) {
                serve(ready_connection);
            }
        }
        while (!thinking_.empty() && thinking_.front()->started <= now_) {
            connection& next = *thinking_.front();
            thinking_.pop_front();
            start_request(next, now());
        }
        return true;
    }

    void start_request(connection& peer, nanoseconds at) {
        if (options_.requests != 0 && issued_ == options_.requests) {
            return;
        }
        peer.stamp = ++issued_;
        peer.started = at;
        peer.sent = 0;
        peer.received = 0;
        peer.waiting = true;
        ++outstanding_;
        send_rest(peer);
    }

    void send_rest(connection& peer) {
        stamp_message(peer.stamp);
        while (peer.sent < message_.size()) {
            ssize_t const sent = send(peer.descriptor, message_.data() + peer.sent,
                                      message_.size() - peer.sent, MSG_NOSIGNAL);
            if (sent >= 0) {
                peer.sent += static_cast<std::uint32_t>(sent);
            } else if (errno != EINTR) {
                if (errno != EAGAIN) {
                    ++errors_.reset;
                    end_connection(peer);
                }
                return;
            }
        }
    }

    void serve(connection& peer) {
        if (peer.sent < message_.size()) {
            send_rest(peer);
        }
        while (peer.waiting) {
            // One more byte than is due, so that a server that says too much is found out.
            std::size_t const due = message_.size() - peer.received;
            ssize_t const size = recv(peer.descriptor, reply_.data(), due + 1, 0);
            if (size <= 0) {
                if (size < 0 && errno == EINTR) {
                    continue;
                }
                if (size < 0 && errno == EAGAIN) {
                    return;
                }
                ++(size == 0 ? errors_.short_ : errors_.reset);
                end_connection(peer);
                return;
            }
            auto const received = static_cast<std::size_t>(size);
            stamp_message(peer.stamp);
            if (received > due ||
                std::memcmp(message_.data() + peer.received, reply_.data(), received) != 0) {
                ++errors_.mismatch;
                end_connection(peer);
                return;
            }
            peer.received += static_cast<std::uint32_t>(received);
            if (peer.received == message_.size()) {
                finish_request(peer);
                return;
            }
        }
    }

    void finish_request(connection& peer) {
        nanoseconds const replied = now();
        latencies_.add(replied - peer.started);
        peer.waiting = false;
        --outstanding_;
        if (options_.idle) {
            return;
        }
        if (think_ == 0) {
            start_request(peer, replied);
        } else {
            peer.started = replied + think_;  // the same for all, so the queue stays in order
            thinking_.push_back(&peer);
        }
    }

    void end_connection(connection& peer) {
        close(peer.descriptor);
        peer.descriptor = -1;
        peer.waiting = false;
        --outstanding_;
        --live_;
    }

    void stamp_message(std::uint64_t stamp) {
        std::memcpy(message_.data(), &stamp, std::min(sizeof stamp, message_.size()));
    }

    moment read_clocks() const {
        moment result;
        if (options_.watch_pid != 0) {
            result.watched_cpu = now_by(watched_clock_);
            result.watched_delay = delay_of(std::to_string(options_.watch_pid).c_str());
        }
        result.own_cpu = now_by(CLOCK_PROCESS_CPUTIME_ID);
        result.own_delay = delay_of("self");
        result.wall = now();
        return result;
    }

    void report() const {
        auto const requests = static_cast<double>(latencies_.total());
        double const seconds = static_cast<double>(end_.wall - begin_.wall) / 1e9;
        auto const share = [seconds](nanoseconds from, nanoseconds to) {
            return static_cast<double>(to - from) / 1e9 / seconds;
        };
        double const own_delay = share(begin_.own_delay, end_.own_delay);
        double const busy = share(begin_.own_cpu, end_.own_cpu) + own_delay;
        auto const quantile_us = [this](double share) {
            return static_cast<double>(latencies_.quantile(share)) / 1e3;
        };
        std::printf("{\"connections\":%zu,\"message_bytes\":%zu,\"requests\":%.0f,"
                    "\"seconds\":%.6f,\"requests_per_second\":%.1f,",
                    options_.connections, message_.size(), requests, seconds, requests / seconds);
        std::printf("\"p50_us\":%.2f,\"p99_us\":%.2f,\"p999_us\":%.2f,\"max_us\":%.2f,",
                    quantile_us(0.5), quantile_us(0.99), quantile_us(0.999),
                    static_cast<double>(latencies_.most()) / 1e3);
        if (options_.watch_pid != 0 && requests > 0) {
            std::printf("\"watched_cpu_us_per_request\":%.4f,\"watched_delay_fraction\":%.4f,",
                        static_cast<double>(end_.watched_cpu - begin_.watched_cpu) / 1e3 / requests,
                        share(begin_.watched_delay, end_.watched_delay));
        }
        std::printf("\"idle_fraction\":%.4f,\"delay_fraction\":%.4f,", std::max(0.0, 1 - busy),
                    own_delay);
        std::printf("\"errors\":%ju,\"connect_errors\":%ju,\"resets\":%ju,\"short\":%ju,"
                    "\"mismatches\":%ju,\"stalled\":%ju}\n",
                    std::uintmax_t{errors_.total()}, std::uintmax_t{errors_.connect},
                    std::uintmax_t{errors_.reset}, std::uintmax_t{errors_.short_},
                    std::uintmax_t{errors_.mismatch}, std::uintmax_t{errors_.stalled});
    }

    options options_;
    nanoseconds think_;
    std::vector<char> message_;  // stamped anew for each message and each comparison
    std::vector<char> reply_;
    int poller_ = -1;
    clockid_t watched_clock_{};
    std::vector<connection> connections_;
    std::deque<connection*> thinking_;
    std::size_t live_ = 0;
    std::uint64_t outstanding_ = 0;
    std::uint64_t issued_ = 0;
    nanoseconds now_ = 0;  // at the latest return of the wait
    moment begin_;
    moment end_;
    histogram latencies_;
    error_counts errors_;
    epoll_event events_[512];
};

[[noreturn]] void usage() {
    std::fputs("usage: echo_load --port P [--connections N] [--seconds S] [--warmup-seconds S]\n"
               "                 [--requests N] [--message-bytes N] [--think-us U]\n"
               "                 [--watch-pid PID] [--stall-seconds S] [--idle]\n",
               stderr);
    std::exit(2);
}

template <class Number>
Number parse(std::string_view text, Number least, Number most) {
    Number value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
        usage();
    }
    return value;
}

options parse_options(int argc, char** argv) {
    constexpr double longest = 1e6;
    options result;
    for (int i = 1; i < argc; ++i) {
        std::string_view const name = argv[i];
        if (name == "--idle") {
            result.idle = true;
            continue;
        }
        if (++i == argc) {
            usage();
        }
        std::string_view const value = argv[i];
        if (name == "--port") {
            result.port = parse<std::uint16_t>(value, 1, UINT16_MAX);
        } else if (name == "--connections") {
            result.connections = parse<std::size_t>(value, 1, 1'000'000);
        } else if (name == "--seconds") {
            result.seconds = parse<double>(value, 0, longest);
        } else if (name == "--warmup-seconds") {
            result.warmup_seconds = parse<double>(value, 0, longest);
        } else if (name == "--requests") {
            result.requests = parse<std::uint64_t>(value, 1, UINT64_MAX);
        } else if (name == "--message-bytes") {
            result.message_bytes = parse<std::size_t>(value, 1, 1U << 30);
        } else if (name == "--think-us") {
            result.think_us = parse<double>(value, 0, longest * 1e6);
        } else if (name == "--stall-seconds") {
            result.stall_seconds = parse<double>(value, 0, longest);
        } else if (name == "--watch-pid") {
            result.watch_pid = parse<int>(value, 1, std::numeric_limits<int>::max());
        } else {
            usage();
        }
    }
    if (result.port == 0) {
        usage();
    }
    return result;
}

void raise_descriptor_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
    options const wanted = parse_options(argc, argv);
    raise_descriptor_limit();
    static load generator(wanted);  // too large for a stack
    return generator.run();
}
