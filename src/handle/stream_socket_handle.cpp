// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/stream_socket_handle.hpp>

#include "handle/adopted.hpp"
#include "handle/blocking.hpp"
#include "handle/outcome.hpp"

namespace plumb {

result<stream_socket_handle> stream_socket_handle::stream_socket(endpoint::family_type f) noexcept {
    auto const opened = platform::os().open_socket(handle_kind::stream_socket, f);
    if (opened < 0) {
        return platform::error_of(opened);
    }
    return stream_socket_handle(opened);
}

result<stream_socket_handle::pair> stream_socket_handle::socket_pair() noexcept {
    native_handle native[2];
    if (auto const opened = platform::os().open_socket_pair(native); opened < 0) {
        return platform::error_of(opened);
    }
    return pair{stream_socket_handle(native[0]), stream_socket_handle(native[1])};
}

result<stream_socket_handle> stream_socket_handle::adopt(native_handle native) noexcept {
    auto const own = adopted(native, platform::native_kind::stream_socket);
    if (!own) {
        return own.error();
    }
    return stream_socket_handle(*own);
}

result<stream_socket_handle> stream_socket_handle::clone() const noexcept {
    auto const cloned = platform::os().duplicate(native());
    if (cloned < 0) {
        return platform::error_of(cloned);
    }
    return stream_socket_handle(cloned);
}

result<void> stream_socket_handle::connect(endpoint const& peer, deadline limit) noexcept {
    auto const& os = platform::os();
    bool started = false;
    return to_result(block(native(), platform::writable, limit, [&] {
        if (started) {
            return os.connect_outcome(native());
        }
        started = true;
        auto const begun = os.connect(native(), peer);
        return begun == platform::failed_with(std::errc::operation_in_progress)
                   ? platform::failed_with(std::errc::resource_unavailable_try_again)
                   : begun;
    }));
}

result<void> stream_socket_handle::shutdown_write() noexcept {
    return to_result(platform::os().shutdown_write(native()));
}

result<void> stream_socket_handle::set_no_delay(bool on) noexcept {
    auto const set =
        platform::os().set_option(native(), platform::socket_option::no_delay, on ? 1 : 0);
    return to_result(set == platform::failed_with(std::errc::operation_not_supported) ? 0 : set);
}

result<void> stream_socket_handle::set_reset_on_close() noexcept {
    return to_result(platform::os().set_option(native(), platform::socket_option::linger, 0));
}

result<endpoint> stream_socket_handle::local() const noexcept {
    endpoint e;
    if (auto const known = platform::os().local_endpoint(native(), e); known < 0) {
        return platform::error_of(known);
    }
    return e;
}

result<endpoint> stream_socket_handle::peer() const noexcept {
    endpoint e;
    if (auto const known = platform::os().peer_endpoint(native(), e); known < 0) {
        return platform::error_of(known);
    }
    return e;
}

}  // namespace plumb
