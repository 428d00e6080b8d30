// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/listen_socket_handle.hpp>

#include "handle/adopted.hpp"
#include "handle/blocking.hpp"
#include "handle/outcome.hpp"

namespace plumb {

result<listen_socket_handle> listen_socket_handle::listen(endpoint const& where,
                                                          options o) noexcept {
    auto const& os = platform::os();
    auto const opened = os.open_socket(handle_kind::listen_socket, where.family());
    if (opened < 0) {
        return platform::error_of(opened);
    }
    listen_socket_handle socket(opened);
    auto done = os.set_option(opened, platform::socket_option::reuse_address, 1);
    if (done >= 0 && o.share_port) {
        done = os.set_option(opened, platform::socket_option::reuse_port, 1);
    }
    if (done >= 0) {
        done = os.bind(opened, where);
    }
    if (done >= 0) {
        done = os.listen(opened, o.backlog);
    }
    if (done < 0) {
        return platform::error_of(done);
    }
    return socket;
}

result<listen_socket_handle> listen_socket_handle::adopt(native_handle native) noexcept {
    auto const own = adopted(native, platform::native_kind::listen_socket);
    if (!own) {
        return own.error();
    }
    bool const blocks = platform::os().is_blocking(native) != 0;
    return listen_socket_handle(*own, blocks ? handle_kind::shared_listen_socket
                                             : handle_kind::listen_socket);
}

result<listen_socket_handle> listen_socket_handle::clone() const noexcept {
    auto const cloned = platform::os().duplicate(native());
    if (cloned < 0) {
        return platform::error_of(cloned);
    }
    return listen_socket_handle(cloned, kind());
}

result<stream_socket_handle> listen_socket_handle::accept(deadline limit) noexcept {
    auto const accepted =
        block(native(), platform::readable, limit, [&] { return accept_now(native(), kind()); });
    if (accepted < 0) {
        return platform::error_of(accepted);
    }
    return stream_socket_handle(accepted);
}

result<endpoint> listen_socket_handle::local() const noexcept {
    endpoint e;
    if (auto const known = platform::os().local_endpoint(native(), e); known < 0) {
        return platform::error_of(known);
    }
    return e;
}

}  // namespace plumb
