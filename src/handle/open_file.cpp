// SPDX-License-Identifier: Apache-2.0
#include "handle/open_file.hpp"

#include "handle/open_path.hpp"
#include "handle/outcome.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace plumb {
namespace {

using mode = seekable_handle::mode;
using creation = seekable_handle::creation;
using caching = seekable_handle::caching;
using platform::failed_with;

constexpr std::uint32_t access_of(mode access) noexcept {
    switch (access) {
    case mode::read:
        return platform::open_read;
    case mode::write:
        return platform::open_read | platform::open_write;
    case mode::append:
        return platform::open_write | platform::open_append;
    case mode::attributes:
        break;
    }
    return platform::open_place;
}

constexpr std::uint32_t creation_of(creation existence) noexcept {
    switch (existence) {
    case creation::open_existing:
        break;
    case creation::if_needed:
        return platform::open_create;
    case creation::truncate:
        return platform::open_truncate;
    case creation::create_new:
    case creation::always_new:
        return platform::open_create | platform::open_exclusive;
    }
    return 0;
}

constexpr std::uint32_t caching_of(caching cached) noexcept {
    switch (cached) {
    case caching::all:
        break;
    case caching::reads:
        return platform::open_synchronous;
    case caching::none:
        return platform::open_synchronous | platform::open_direct;
    }
    return 0;
}

/// What the system says to a file without i/o past its cache is the same as to nonsense.
result<native_handle> told_clearly(result<native_handle> opened, std::uint32_t how) noexcept {
    if ((how & platform::open_direct) != 0 && !opened &&
        opened.error() == std::errc::invalid_argument) {
        return std::errc::not_supported;
    }
    return opened;
}

/// Room for a name such as `.plumb-1234abcd`.
using file_name = std::array<char, 32>;

/// Makes a file under a name that nothing else has.
/// @param how  also creates and is exclusive
result<native_handle> make_newcomer(path_handle const& directory, std::uint32_t how,
                                    file_name& name) noexcept {
    constexpr std::string_view prefix = ".plumb-";
    auto const& os = platform::os();
    auto* const digits = name.data() + prefix.copy(name.data(), prefix.size());
    platform::outcome opened;
    int attempts = 0;
    do {
        auto const id = static_cast<std::uint64_t>(os.steady_now() + attempts);
        *std::to_chars(digits, name.data() + name.size() - 1, id, 16).ptr = '\0';
        opened = os.open_file(directory.native(), name.data(), how);
    } while (opened == failed_with(std::errc::file_exists) && ++attempts < 100);
    if (opened == failed_with(std::errc::invalid_argument)) {
        // Some file systems find out that they can't when they have made the file.
        (void)os.unlink(directory.native(), name.data());
    }
    return to_native(opened);
}

/// Puts a new file in the place of what has the name. Both are looked up in the same directory, whatever happens to its
/// path meanwhile.
result<native_handle> replace(path_handle const& base, path_view path, std::uint32_t how) noexcept {
    auto const parent = path.parent();
    auto const directory = path_handle::directory(base, parent.empty() ? "." : parent);
    if (!directory) {
        return directory.error();
    }
    path_view::zero_terminated const leaf(path.leaf());
    auto const given = leaf.get();
    if (!given) {
        return given.error();
    }
    file_name name;
    auto const made = make_newcomer(*directory, how, name);
    if (!made) {
        return made;
    }
    auto const& os = platform::os();
    if (auto const renamed = os.rename(directory->native(), name.data(), *given); renamed < 0) {
        (void)os.unlink(directory->native(), name.data());
        (void)os.close(*made);
        return platform::error_of(renamed);
    }
    return made;
}

}  // namespace

result<native_handle> open_file(path_handle const& base, path_view path, mode access,
                                creation existence, caching cached) noexcept {
    if ((access == mode::attributes && existence != creation::open_existing) ||
        (access == mode::read && existence == creation::truncate)) {
        return std::errc::invalid_argument;
    }
    auto const how = access_of(access) | creation_of(existence) | caching_of(cached);
    return told_clearly(existence == creation::always_new ? replace(base, path, how)
                                                          : open_path(base, path, how),
                        how);
}

result<native_handle> open_unnamed_file(path_handle const& directory, caching cached) noexcept {
    auto const& os = platform::os();
    auto const how = access_of(mode::write) | caching_of(cached) | platform::open_exclusive;
    auto const opened = os.open_file(directory.native(), ".", how | platform::open_unnamed);
    if (opened != failed_with(std::errc::operation_not_supported)) {
        return told_clearly(to_native(opened), how);
    }
    file_name name;
    auto const made = make_newcomer(directory, how | platform::open_create, name);
    if (made) {
        (void)os.unlink(directory.native(), name.data());
    }
    return told_clearly(made, how);
}

result<native_handle> reopen_file(native_handle native, mode access, caching cached) noexcept {
    auto const how = access_of(access) | caching_of(cached);
    return told_clearly(to_native(platform::os().reopen_file(native, how)), how);
}

}  // namespace plumb
