// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/handle/endpoint.hpp>
#include <plumb/io/io_operation.hpp>

#include <cstddef>
#include <cstring>

namespace plumb {

/// The state of an operation with an address: of a connect, a send or a receive.
class addressed_operation : public io_operation {
protected:
    addressed_operation(action what, handle* target, deadline limit, deliver_function deliver,
                        endpoint const& to) noexcept
        : io_operation(what, target, limit, deliver), address_(to) {}
    addressed_operation(action what, handle* target, deadline limit,
                        deliver_function deliver) noexcept
        : io_operation(what, target, limit, deliver) {}
    addressed_operation(addressed_operation&& idle) noexcept
        : io_operation(static_cast<io_operation&&>(idle)) {
        std::memcpy(&native_, &idle.native_, sizeof(native_));
    }
    ~addressed_operation() { end(); }

    /// Whom it is for, or once a receive is over, whom it is from.
    [[nodiscard]] endpoint const& address() const noexcept { return address_; }

private:
    friend io_backend;

    union {
        endpoint address_;
        // While a backend receives: what it tells the system of where to put the address.
        alignas(8) std::byte native_[176];
    };
};

static_assert(sizeof(addressed_operation) <= 384);

}  // namespace plumb
