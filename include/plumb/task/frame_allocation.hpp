// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plumb/exec/pooled_memory.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>

namespace plumb {

/// Where coroutine frames can come from instead of the thread's pool. Counted: its owner holds one count and each
/// live frame one, so that it outlives the last frame whoever goes first.
/// Threads: `allocate` and `deallocate` must take calls from every thread that its coroutines run on.
class frame_resource {
public:
    struct functions {
        /// @return null when there is no memory; else aligned to `pooled_memory_alignment`, where frames may hold what
        /// is over-aligned, and else for every fundamental type
        void* (*allocate)(frame_resource&, std::size_t bytes) noexcept;
        void (*deallocate)(frame_resource&, void* block, std::size_t bytes) noexcept;
        void (*retain)(frame_resource&) noexcept;
        void (*release)(frame_resource&) noexcept;
    };

    constexpr explicit frame_resource(functions const& f) noexcept : functions_(&f) {}

private:
    friend class frame_allocation;
    functions const* functions_;
};

/// A coroutine whose first or second parameter (the object, of a member function) has this gets its frame from there.
template <class T>
concept has_frame_resource = requires(T const& t) {
    { t.get_frame_resource() } -> std::same_as<frame_resource&>;
};

/// The base of promises: frames come from the resource that the first or second parameter names, else from the
/// thread's pool. A hidden word at the end of each frame says from where, because the parameters are gone when it
/// is freed. Throws std::bad_alloc at the call of the coroutine.
class frame_allocation {
public:
    template <class... Parameters>
    static void* operator new(std::size_t bytes, Parameters const&... parameters) {
        frame_resource* const from = resource_of(parameters...);
        return from == nullptr ? allocate(bytes) : allocate_from(*from, bytes);
    }
    static void* operator new(std::size_t bytes) { return allocate(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept {
        frame_resource* from;
        std::memcpy(&from, static_cast<std::byte*>(frame) + bytes, sizeof(from));
        if (from == nullptr) [[likely]] {
            pooled_deallocate(frame, with_origin(bytes));
        } else {
            deallocate_to(*from, frame, bytes);
        }
    }

private:
    static constexpr std::size_t with_origin(std::size_t bytes) noexcept {
        return bytes + sizeof(frame_resource*);
    }

    static frame_resource* resource_of() noexcept { return nullptr; }

    template <class First>
    static frame_resource* resource_of(First const& first) noexcept {
        if constexpr (has_frame_resource<First>) {
            return &first.get_frame_resource();
        } else {
            return nullptr;
        }
    }

    template <class First, class Second, class... Rest>
    static frame_resource* resource_of(First const& first, Second const& second,
                                       Rest const&...) noexcept {
        if constexpr (has_frame_resource<First>) {
            return resource_of(first);
        } else {
            return resource_of(second);
        }
    }

    static void* allocate(std::size_t bytes) {
        void* const frame = pooled_allocate(with_origin(bytes));
        if (frame == nullptr) [[unlikely]] {
            throw_no_memory();
        }
        mark(frame, bytes, nullptr);
        return frame;
    }

    static void mark(void* frame, std::size_t bytes, frame_resource* from) noexcept {
        std::memcpy(static_cast<std::byte*>(frame) + bytes, &from, sizeof(from));
    }

    static void* allocate_from(frame_resource& from, std::size_t bytes);
    static void deallocate_to(frame_resource& from, void* frame, std::size_t bytes) noexcept;
    [[noreturn]] static void throw_no_memory();
};

}  // namespace plumb
