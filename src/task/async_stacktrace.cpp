// SPDX-License-Identifier: Apache-2.0
#include <plumb/task/async_stacktrace.hpp>

#include <plumb/exec/pooled_memory.hpp>

#include <atomic>
#include <new>

namespace plumb {

struct async_stacktrace::block {
    std::atomic<std::size_t> users;
    std::size_t size;
    bool truncated;

    static constexpr std::size_t bytes(std::size_t frames) noexcept {
        return sizeof(block) + frames * sizeof(std::source_location);
    }
    // Behind the block.
    [[nodiscard]] std::source_location* frames() noexcept {
        return reinterpret_cast<std::source_location*>(this + 1);
    }
};

namespace {

/// @return the first frame that is shown, of this one and those that await it
async_frame const* shown_from(async_frame const* frame) noexcept {
    while (frame != nullptr && frame->hidden()) {
        frame = frame->awaiter();
    }
    return frame;
}

}  // namespace

async_stacktrace::async_stacktrace(async_frame const& innermost) noexcept {
    async_frame const* const first = shown_from(&innermost);
    async_frame const* frame = first;
    std::size_t size = 0;
    for (; frame != nullptr && size != most; frame = shown_from(frame->awaiter())) {
        ++size;
    }
    if (size == 0) {
        return;
    }
    void* const memory = pooled_allocate(block::bytes(size));
    if (memory == nullptr) {
        return;
    }
    held_ = ::new (memory) block{1, size, frame != nullptr};
    auto* to = held_->frames();
    for (auto const* f = first; size-- != 0; f = shown_from(f->awaiter())) {
        ::new (to++) std::source_location(f->location());
    }
}

async_stacktrace::async_stacktrace(async_stacktrace const& other) noexcept : held_(other.held_) {
    if (held_ != nullptr) {
        held_->users.fetch_add(1, std::memory_order_relaxed);
    }
}

void async_stacktrace::release() noexcept {
    if (held_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        pooled_deallocate(held_, block::bytes(held_->size));
    }
}

std::size_t async_stacktrace::size() const noexcept { return empty() ? 0 : held_->size; }

std::source_location const* async_stacktrace::begin() const noexcept {
    return empty() ? nullptr : held_->frames();
}

bool async_stacktrace::truncated() const noexcept { return !empty() && held_->truncated; }

std::string async_stacktrace::to_string() const {
    std::string text;
    for (std::size_t i = 0; i != size(); ++i) {
        auto const& where = (*this)[i];
        text += '[';
        text += std::to_string(i);
        text += "] ";
        text += function_of(where);
        text += " at ";
        text += where.file_name();
        text += ':';
        text += std::to_string(where.line());
        text += '\n';
    }
    if (truncated()) {
        text += "and more\n";
    }
    return text;
}

// GCC names the function that it has made of a coroutine, `void n::f(f(int)::_Z1fi.Frame*)`: what its parameter begins with
// is the coroutine as it was written.
std::string_view function_of(std::source_location where) noexcept {
    std::string_view const name = where.function_name();
    auto const end = name.rfind("::_Z");
    if (end == std::string_view::npos || name.find(".Frame*)", end) == std::string_view::npos) {
        return name;
    }
    int closed = 0;
    for (auto begin = end; begin != 0; --begin) {
        char const before = name[begin - 1];
        if (before == '(' && closed-- == 0) {
            return name.substr(begin, end - begin);
        }
        closed += before == ')' ? 1 : 0;
    }
    return name;
}

}  // namespace plumb
