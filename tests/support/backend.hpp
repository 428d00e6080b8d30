// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/listen_socket_handle.hpp>
#include <plumb/handle/pipe_handle.hpp>
#include <plumb/handle/stream_socket_handle.hpp>
#include <plumb/io/io_multiplexer.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace plumb::test {

/// How long a test waits for what must happen, in the time of the system in use.
inline constexpr std::chrono::seconds patience{10};

/// A multiplexer of the kind that the test's name ends in. Instantiate with `every_backend` or
/// `real_backends`, and `name_of_backend`. Made for as many threads as PLUMB_TEST_THREADS says.
class on_every_backend : public ::testing::TestWithParam<multiplexer_kind> {
protected:
    on_every_backend();
    ~on_every_backend() override;
    void SetUp() override;

    [[nodiscard]] io_multiplexer& multiplexer() noexcept { return *multiplexer_; }
    [[nodiscard]] bool simulated() const noexcept { return GetParam() == multiplexer_kind::sim; }

    /// Another one of the same kind.
    [[nodiscard]] std::unique_ptr<io_multiplexer> another() const;
    void end_multiplexer() noexcept { multiplexer_.reset(); }

    /// Drives the multiplexer until the condition holds.
    /// @return whether it holds; false when nothing is pending any more, or when patience is over
    template <std::predicate Condition>
    bool drive_until(Condition condition) {
        return drive_until(*multiplexer_, condition);
    }
    template <std::predicate Condition>
    static bool drive_until(io_multiplexer& m, Condition condition) {
        auto const end = now() + patience;
        while (!condition()) {
            auto const done = m.try_run_until(end);
            if (!done || *done == 0 || now() >= end) {
                return condition();
            }
        }
        return true;
    }

    /// Turns the multiplexer until it has nothing more to do at this time.
    void settle();

    /// The steady clock of the system in use.
    static std::chrono::steady_clock::time_point now() noexcept;
    static std::chrono::system_clock::time_point system_now() noexcept;

    /// Sockets that are connected over loopback, set to use the multiplexer.
    stream_socket_handle::pair tcp_pair();
    /// Unix sockets, set to use it. Full, they stay so; TCP takes more when it has probed a full peer for a while.
    stream_socket_handle::pair socket_pair();
    pipe_handle::ends pipe();

private:
    class world_while_running;  // the simulated one, while the test runs
    std::unique_ptr<world_while_running> world_;
    std::unique_ptr<io_multiplexer> multiplexer_;
};

[[nodiscard]] ::testing::internal::ParamGenerator<multiplexer_kind> every_backend();
[[nodiscard]] ::testing::internal::ParamGenerator<multiplexer_kind> real_backends();
[[nodiscard]] std::string name_of_backend(::testing::TestParamInfo<multiplexer_kind> const& info);

/// What a receiver was told.
template <class Result>
struct record {
    std::optional<Result> value;
    int values = 0;
    int dones = 0;

    [[nodiscard]] bool done() const noexcept { return dones != 0; }
    [[nodiscard]] bool untold() const noexcept { return values == 0 && dones == 0; }
};

/// Writes down what it is told. The record must outlive it.
template <class Result>
class recorder {
public:
    explicit recorder(record<Result>& into) noexcept : into_(&into) {}

    void set_value(Result&& r) noexcept {
        EXPECT_EQ(into_->values, into_->dones) << "set_value without set_done before";
        into_->value.emplace(std::move(r));
        ++into_->values;
    }
    void set_done() noexcept {
        ++into_->dones;
        EXPECT_EQ(into_->values, into_->dones) << "set_done without set_value before";
    }

private:
    record<Result>* into_;
};

template <class Sender>
using record_of = record<typename Sender::result_type>;

/// Calls functions when it is told.
template <class Result>
struct calling {
    std::function<void(Result&&)> value = [](Result&&) {};
    std::function<void()> done = [] {};

    void set_value(Result&& r) noexcept { value(std::move(r)); }
    void set_done() noexcept { done(); }
};

template <class Sender>
using calling_for = calling<typename Sender::result_type>;

/// A text as bytes to be written, and bytes that were read as a text.
[[nodiscard]] inline const_buffer bytes_of(std::string const& text) noexcept {
    return const_buffer(text.data(), text.size());
}
[[nodiscard]] std::string text_of(io_result<buffers> const& r);

}  // namespace plumb::test
