// SPDX-License-Identifier: Apache-2.0
#include <plumb/base/error.hpp>

#include <string>

namespace plumb {
namespace {

class category final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "plumb"; }

    [[nodiscard]] std::string message(int code) const override {
        switch (static_cast<error>(code)) {
        case error::end_of_stream:
            return "the stream ended before all that was asked for had come";
        case error::limit_exceeded:
            return "more came than the limit allows";
        case error::busy:
            return "another operation of this kind is in flight on the handle";
        case error::parked_bytes:
            return "bytes that were already received wait to be read";
        case error::already_started:
            return "it was started before, and can be started once";
        case error::not_an_address:
            return "not a numeric address";
        case error::zero_in_path:
            return "the path has a zero byte inside";
        case error::misaligned:
            return "an address, a size or an offset is no multiple of what direct i/o needs";
        case error::file_shrank:
            return "the mapped file has become shorter";
        case error::map_fault:
            return "mapped bytes can't be reached";
        case error::wrong_kind:
            return "the native handle names something of another kind";
        }
        return "unknown error";
    }

    [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override {
        switch (static_cast<error>(code)) {
        case error::busy:
            return std::errc::device_or_resource_busy;
        case error::not_an_address:
        case error::zero_in_path:
        case error::misaligned:
        case error::wrong_kind:
            return std::errc::invalid_argument;
        case error::map_fault:
            return std::errc::io_error;
        default:
            return {code, *this};
        }
    }
};

// A constant without a destructor, so that errors can be looked at before main and while the process
// ends.
union immortal {
    constexpr immortal() noexcept : value() {}
    constexpr ~immortal() {}
    category value;
    char unused;  // without a member that is literal itself this couldn't be a constant
};

constexpr immortal instance;

}  // namespace

std::error_category const& plumb_category() noexcept { return instance.value; }

}  // namespace plumb
