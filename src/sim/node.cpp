// SPDX-License-Identifier: Apache-2.0
#include "sim/node.hpp"

#include <algorithm>

namespace plumb::sim {

outcome node::read(std::span<buffer const>) { return failed_with(std::errc::bad_file_descriptor); }
outcome node::write(std::span<const_buffer const>) {
    return failed_with(std::errc::bad_file_descriptor);
}
outcome node::send(std::span<const_buffer const>, endpoint const&) {
    return failed_with(std::errc::not_a_socket);
}
outcome node::receive(std::span<buffer const>, endpoint&) {
    return failed_with(std::errc::not_a_socket);
}
outcome node::bind(endpoint const&) { return failed_with(std::errc::not_a_socket); }
outcome node::listen(int) { return failed_with(std::errc::not_a_socket); }
outcome node::connect(endpoint const&) { return failed_with(std::errc::not_a_socket); }
outcome node::connect_outcome() { return failed_with(std::errc::not_a_socket); }
outcome node::shutdown_write() { return failed_with(std::errc::not_a_socket); }
outcome node::set_option(platform::socket_option, int) {
    return failed_with(std::errc::not_a_socket);
}
outcome node::set_membership(endpoint const&, bool) { return failed_with(std::errc::not_a_socket); }
outcome node::local_endpoint(endpoint&) const { return failed_with(std::errc::not_a_socket); }
outcome node::peer_endpoint(endpoint&) const { return failed_with(std::errc::not_a_socket); }
outcome node::accepts() const { return failed_with(std::errc::not_a_socket); }
std::shared_ptr<node> node::accept() { return nullptr; }

outcome node::watch(std::shared_ptr<poller> const& by, native_handle h, std::uint64_t key) {
    std::erase_if(watchers_, [](auto const& w) { return w->by.expired(); });
    auto const watches = [&](auto const& w) { return w->by.lock() == by && w->handle == h; };
    if (std::ranges::any_of(watchers_, watches)) {
        return failed_with(std::errc::file_exists);
    }
    watchers_.push_back(std::make_shared<watching>(this, by, h, key));
    by->changed(watchers_.back());
    return 0;
}

outcome node::unwatch(poller const& by, native_handle h) {
    auto const found = std::ranges::find_if(
        watchers_, [&](auto const& w) { return w->by.lock().get() == &by && w->handle == h; });
    if (found == watchers_.end()) {
        return failed_with(std::errc::no_such_file_or_directory);
    }
    (*found)->target = nullptr;
    watchers_.erase(found);
    return 0;
}

void node::unwatch_all() noexcept {
    for (auto const& w : watchers_) {
        w->target = nullptr;
    }
    watchers_.clear();
}

void node::changed() {
    for (auto const& w : watchers_) {
        if (auto const by = w->by.lock()) {
            by->changed(w);
        }
    }
}

}  // namespace plumb::sim
