// SPDX-License-Identifier: Apache-2.0
#include <plumb/handle/pipe_handle.hpp>

#include "handle/adopted.hpp"
#include "handle/blocking.hpp"
#include "handle/open_path.hpp"
#include "handle/outcome.hpp"

namespace plumb {
namespace {

using platform::failed_with;
using platform::outcome;

constexpr auto nobody_reads = failed_with(std::errc::no_such_device_or_address);

/// Opens an end of a pipe that is held by `native`, without waiting.
outcome open_end(native_handle native, pipe_handle::mode end) noexcept {
    auto const how = end == pipe_handle::mode::read ? platform::open_read : platform::open_write;
    return platform::os().reopen_file(native, how | platform::open_nonblocking);
}

/// Opens the writing end of a pipe as soon as there is a reader.
outcome open_writer(native_handle native, deadline limit) noexcept {
    auto const& os = platform::os();
    if (limit.is_infinite()) {
        auto const opened = os.reopen_file(native, platform::open_write);
        auto const marked = opened < 0 ? opened : os.set_blocking(opened, false);
        if (marked < 0 && opened >= 0) {
            os.close(opened);
        }
        return marked < 0 ? marked : opened;
    }
    return repeat_with_pauses(limit, [native] {
        auto const opened = open_end(native, pipe_handle::mode::write);
        return opened == nobody_reads ? failed_with(std::errc::resource_unavailable_try_again)
                                      : opened;
    });
}

result<void> make_pipe(path_handle const& base, path_view path, bool must_be_new) noexcept {
    path_view::zero_terminated const text(path);
    auto const given = text.get();
    if (!given) {
        return given.error();
    }
    auto const made = platform::os().make_pipe(base.native(), *given);
    return to_result(!must_be_new && made == failed_with(std::errc::file_exists) ? 0 : made);
}

}  // namespace

result<pipe_handle::ends> pipe_handle::anonymous_pipe() noexcept {
    native_handle native[2];
    if (auto const opened = platform::os().open_pipe(native); opened < 0) {
        return platform::error_of(opened);
    }
    return ends{pipe_handle(native[0]), pipe_handle(native[1])};
}

// What is opened by its place is what was looked at, whoever has the name by then.
result<pipe_handle> pipe_handle::named_pipe(path_handle const& base, path_view path, mode end,
                                            creation existence, deadline limit) noexcept {
    if (existence != creation::open_existing) {
        if (auto const made = make_pipe(base, path, existence == creation::create_new); !made) {
            return made.error();
        }
    }
    auto const place = path_handle::path(base, path);
    if (!place) {
        return place.error();
    }
    if (auto const is = adopted(place->native(), platform::native_kind::pipe); !is) {
        return is.error();
    }
    auto const opened =
        end == mode::read ? open_end(place->native(), end) : open_writer(place->native(), limit);
    if (opened < 0) {
        return platform::error_of(opened);
    }
    return pipe_handle(opened, handle_kind::polled_pipe);
}

result<pipe_handle> pipe_handle::adopt(native_handle native) noexcept {
    auto const own = adopted(native, platform::native_kind::pipe);
    if (!own) {
        return own.error();
    }
    return pipe_handle(*own, handle_kind::shared_pipe);
}

result<pipe_handle> pipe_handle::clone() const noexcept {
    auto const cloned = platform::os().duplicate(native());
    if (cloned < 0) {
        return platform::error_of(cloned);
    }
    return pipe_handle(cloned, handle_kind::shared_pipe);
}

result<pipe_handle> pipe_handle::reopen(mode end) const noexcept {
    auto const opened = open_end(native(), end);
    if (opened < 0) {
        return platform::error_of(opened);
    }
    return pipe_handle(opened, handle_kind::polled_pipe);
}

}  // namespace plumb
