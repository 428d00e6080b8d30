// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/inherited_handle.hpp>

#include "handle/adopted.hpp"

namespace plumb {

result<inherited_handle> inherited_handle::adopt(native_handle native) noexcept {
    using platform::native_kind;
    auto const kind = kind_of(native);
    if (!kind) {
        return kind.error();
    }
    switch (*kind) {
    case native_kind::file:
        return inherited_handle(native, handle_kind::file_stream, thing::file);
    case native_kind::pipe:
        return inherited_handle(native, handle_kind::shared_pipe, thing::pipe);
    case native_kind::terminal:
        return inherited_handle(native, handle_kind::shared_pipe, thing::terminal);
    case native_kind::device:
        return inherited_handle(native, handle_kind::shared_pipe, thing::device);
    case native_kind::stream_socket:
        return inherited_handle(native, handle_kind::stream_socket, thing::stream_socket);
    case native_kind::datagram_socket:
        return inherited_handle(native, handle_kind::datagram_socket, thing::datagram_socket);
    case native_kind::directory:
    case native_kind::listen_socket:
    case native_kind::other_socket:
        break;
    }
    return error::wrong_kind;
}

// A terminal that is opened again has flags of its own, which nobody shares.
result<inherited_handle> inherited_handle::standard(native_handle native, bool reads) noexcept {
    auto const& os = platform::os();
    auto opened = platform::failed_with(std::errc::not_supported);
    if (auto const kind = kind_of(native); kind && *kind == platform::native_kind::terminal) {
        opened = os.reopen_file(native, (reads ? platform::open_read : platform::open_write) |
                                            platform::open_nonblocking);
    }
    if (opened < 0) {
        opened = os.duplicate(native);
    }
    if (opened < 0) {
        return platform::error_of(opened);
    }
    auto made = adopt(opened);
    if (!made) {
        os.close(opened);
    }
    return made;
}

result<inherited_handle> inherited_handle::standard_input() noexcept { return standard(0, true); }

result<inherited_handle> inherited_handle::standard_output() noexcept { return standard(1, false); }

result<inherited_handle> inherited_handle::standard_error() noexcept { return standard(2, false); }

result<inherited_handle> inherited_handle::clone() const noexcept {
    auto const cloned = platform::os().duplicate(native());
    if (cloned < 0) {
        return platform::error_of(cloned);
    }
    return inherited_handle(cloned, kind(), what_);
}

}  // namespace plumb
